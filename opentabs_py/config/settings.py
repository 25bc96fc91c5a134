"""Settings: command line > OPENTABS_* > pyproject.toml [tool.opentabs] > the user's file."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from opentabs_py.config.paths import absolute, user_file, working_dir
from opentabs_py.config.sources import (
    TABLES,
    Environment,
    Project,
    UserFile,
    mergeable,
    table_of_secrets,
)
from opentabs_py.core.consent import Permission, parse_rules
from opentabs_py.core.hosts import url_host
from opentabs_py.core.limits import CEILING, IDLE, MESSAGE_LIMIT, Limits
from opentabs_py.core.progress import BURST, RATE, Pace
from opentabs_py.core.recording.scrub_rules import ScrubRules
from opentabs_py.core.sites.match_patterns import parse as parse_match_pattern
from opentabs_py.core.text import did_you_mean, nearest, rule_text, shorten
from opentabs_py.errors import ConfigError

DEFAULT_PORT = 8377


def _number(value: object) -> object:
    """Refuse true and false, which pydantic takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"write a number, not {value}")  # noqa: TRY004
    return value


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(_number)]
Seconds = Positive
Whole = Annotated[int, BeforeValidator(_number)]


def _absolute(path: Path) -> Path:
    """Return an absolute path; expand `~`, since values in files do not pass through a shell."""
    try:
        return absolute(path.expanduser())
    except RuntimeError:
        raise ValueError(f"there is no user of that name: {path}") from None


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]


def _loopback(host: str) -> str:
    """Reject addresses reachable from other machines: clients can use the user's sessions."""
    address = "127.0.0.1" if host == "localhost" else host
    try:
        is_ours = ip_address(address).is_loopback
    except ValueError:
        is_ours = False
    if not is_ours:
        raise ValueError("other machines could connect; use 127.0.0.1, another 127.x.y.z or ::1")
    return address


def _token(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if len(text) < 16 or not re.fullmatch(r"[!-~]+", text):
        raise ValueError("write 16 characters or more, for example from `openssl rand -hex 16`")
    return token


def _webmcp(value: object) -> object:
    """Return match patterns; `all` stands for every page, and text is split at spaces."""
    patterns = _split(value)
    if not isinstance(patterns, list | tuple):
        return patterns
    return ["*://*/*" if each == "all" else each for each in cast("list[object]", [*patterns])]


def _split(value: object) -> object:
    return value.split() if isinstance(value, str) else value


def _patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        parse_match_pattern(pattern)
    return patterns


def _secrets(value: object) -> object:
    """Return the pages of each secret; without any, it may be typed in every page."""
    table = table_of_secrets(value)
    if not isinstance(table, dict):
        return table
    pages = cast("dict[str, object]", table)
    return {name: _pages_of_secret(name, each) for name, each in pages.items()}


def _pages_of_secret(name: str, value: object) -> object:
    if value in ("", []):
        raise ValueError(f"name the pages in which {name} may be typed, or write `all`")
    pages = _split(value)
    if not isinstance(pages, list):
        return pages
    patterns = cast("list[object]", pages)
    return () if "all" in patterns else patterns


def _directories(value: object) -> object:
    return [each for each in value.split(os.pathsep) if each] if isinstance(value, str) else value


class Settings(BaseSettings):
    """The settings of a run; each field is also `OPENTABS_<NAME>` in the environment.

    The paths of directories are absolute, however they were given; `~` is the user's home.

    Attributes:
        idle: Seconds of silence that end a call.
        ceiling: Seconds that a call may take, whatever it reports.
        host: Where MCP clients and the extension connect; must be a loopback address.
        port: The port they connect to; 0 picks a free one.
        token: The token MCP clients must send over HTTP; without one, every program on this
            machine may connect.
        gateway: Serve two tools instead of all: one that finds tools, one that calls them.
        expose: List all tools, or only those of plugins that are ready in an open tab.
        strict_output: Fail calls whose value does not match the tool's output schema; otherwise
            that is only logged.
        output_schemas: Include output schemas in the list of tools; they are half of its size.
        debug: Send the stack traces of tools' errors to MCP clients.
        progress_burst: How many progress notifications of a call may be sent at once.
        progress_rate: How many more may be sent, in notifications per second.
        keepalive: Seconds of silence after which the last progress is sent again.
        late_progress: Keep sending the streams of Python tools as progress after the call's
            response, to clients of the initialize era; MCP does not provide for this.
        max_result: About how many tokens of a result are sent; longer results are cut for the
            model, and kept whole as resources.
        message_limit: The longest input or result, in characters of JSON.
        keep_tabs: When a client disconnects, keep the tabs that it opened.
        chromium: The Chromium to launch; found automatically by default.
        profile: The browser's user data directory; a new one by default.
        signed_in: The saved sign-in that the browser begins with; see `opentabs login`.
        headed: Show the browser's window.
        no_sandbox: Run Chromium without its sandbox, for systems that do not allow it.
        plugins: Directories of built plugins; in the environment, joined like PATH.
        plugin_folders: Folders that contain such directories, which may come and go; in the
            environment, joined like PATH.
        permissions: What may run, by `default`, plugin, or `plugin.tool`: `off`, `ask` or `auto`.
            In the environment, JSON. The sources are merged key by key.
        no_review: Directories of plugins, or folders of them, that need no review, because you
            develop them; in the environment, joined like PATH.
        audit: Record every call in the audit; see docs/audit.md. By default, the commands that
            serve tools do, and programs and tests do not.
        audit_values: Record arguments, results and error messages too, truncated and with secrets
            masked.
        audit_days: For how many days calls are kept.
        audit_size: The largest size of the audit in MB; if it is larger, the oldest calls are
            removed.
        scrub: What else to scrub from recordings; in the environment, JSON.
        volatile: Names of members of queries and bodies that change from one visit to the next, so
            that a replay does not compare them.
        webmcp: Match patterns of the pages whose own tools (WebMCP) are served, or `all`; in the
            environment, separated by spaces.
        webmcp_polyfill: Provide `document.modelContext` to those pages by a script where the
            browser lacks it, and do not turn on Chromium's own.
        hands: Serve tools that read and operate any page of the browser; see docs/hands.md.
        secrets: The names of environment variables that these tools may type, each with the match
            patterns of the pages in which they may; in the environment, JSON.
        plugin_settings: Values of plugins' settings, by plugin and key; in the environment, JSON.
            The sources are merged key by key.
    """

    model_config = SettingsConfigDict(
        env_prefix="OPENTABS_",
        extra="forbid",  # report a misspelt name in a file instead of ignoring it
        pyproject_toml_table_header=("tool", "opentabs"),
    )

    idle: Seconds = IDLE
    ceiling: Seconds = CEILING
    host: Annotated[str, AfterValidator(_loopback)] = "127.0.0.1"
    port: Annotated[Whole, Field(ge=0, le=65535)] = 0
    token: Annotated[SecretStr, AfterValidator(_token)] | None = None
    gateway: bool = False
    expose: Literal["all", "ready"] = "all"
    strict_output: bool = False
    output_schemas: bool = True
    debug: bool = False
    progress_burst: Annotated[Whole, Field(ge=1)] = BURST
    progress_rate: Positive = RATE
    keepalive: Seconds | None = None
    late_progress: bool = True
    max_result: Annotated[Whole, Field(ge=500)] | None = None
    message_limit: Annotated[Whole, Field(ge=1024, le=512 * 1024 * 1024)] = MESSAGE_LIMIT
    keep_tabs: bool = False
    chromium: AbsolutePath | None = None
    profile: AbsolutePath | None = None
    signed_in: str | None = None
    headed: bool = False
    no_sandbox: bool = False
    plugins: Annotated[tuple[AbsolutePath, ...], NoDecode, BeforeValidator(_directories)] = ()
    plugin_folders: Annotated[
        tuple[AbsolutePath, ...], NoDecode, BeforeValidator(_directories)
    ] = ()
    permissions: Annotated[dict[str, Permission], BeforeValidator(parse_rules)] = {}
    no_review: Annotated[tuple[AbsolutePath, ...], NoDecode, BeforeValidator(_directories)] = ()
    audit: bool | None = None
    audit_values: bool = False
    audit_days: Positive = 30.0
    audit_size: Positive = 100.0
    scrub: ScrubRules = ScrubRules()
    volatile: tuple[str, ...] = ()
    webmcp: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(_webmcp), AfterValidator(_patterns)
    ] = ()
    webmcp_polyfill: bool = False
    hands: bool = False
    secrets: Annotated[
        dict[str, Annotated[tuple[str, ...], AfterValidator(_patterns)]], BeforeValidator(_secrets)
    ] = {}
    plugin_settings: dict[str, dict[str, Any]] = Field(default={}, repr=False)  # some are secrets
    _installed: frozenset[str] = PrivateAttr(default=frozenset())
    _given_rules: dict[str, Permission] = PrivateAttr(default={})
    _unused_token: SecretStr | None = PrivateAttr(default=None)

    def installed_check(self) -> Callable[[Path], bool]:
        """Return the function that says whether the user's own settings file names a plugin.

        For this package's own use.

        Otherwise it was named for this run: by a program, a command, the environment, or the
        project in the current directory. The argument is the plugin's directory, resolved.
        """
        plugins = {*map(Path.resolve, self.plugins)}
        folders = {*map(Path.resolve, self.plugin_folders)}
        has_plugins = "plugins" in self._installed
        has_folders = "plugin_folders" in self._installed

        def is_installed(plugin: Path) -> bool:
            within, listed = plugin.parent in folders, plugin in plugins
            named = (listed and not has_plugins) or (within and not has_folders)
            return (listed or within) and not named

        return is_installed

    def check_counts(self, rule: str, permission: Permission) -> None:
        """Check that a permission in the user's own file would count for such settings.

        For this package's own use.

        Raises:
            ConfigError: A source that takes precedence has another one; the text says which.
        """
        sources = {
            "as the server was started": self._given_rules,
            "in OPENTABS_PERMISSIONS": _rules_of(Environment(Settings)),
            f"in {settings_files()[0]}": _rules_of(Project(Settings)),
        }
        for where, rules in sources.items():
            if (found := rules.get(rule, permission)) != permission:
                raise ConfigError(
                    f'permissions."{rule}" is "{found}" {where}, which takes precedence over your '
                    "settings file. Change it there."
                )
            if rule in rules:
                return

    @property
    def limits(self) -> Limits:
        """The two timers of a call."""
        return Limits(idle=self.idle, ceiling=self.ceiling)

    @property
    def url_host(self) -> str:
        """The host in URL form.

        For this package's own use.
        """
        return url_host(self.host)

    @property
    def pace(self) -> Pace:
        """How often a client receives progress.

        For this package's own use.
        """
        return Pace(self.progress_burst, self.progress_rate, self.keepalive)

    @property
    def may_need_browser(self) -> bool:
        """Whether these settings name anything that may have tools in pages.

        For this package's own use.
        """
        return bool(self.plugins or self.plugin_folders or self.webmcp or self.hands)

    def with_audit_default(self) -> "Settings":
        """Return these settings, with calls recorded unless `audit` says otherwise.

        For this package's own use.
        """
        return self if self.audit is not None else self.model_copy(update={"audit": True})

    def with_default_port(self) -> "Settings":
        """Return these settings, with the port that clients know unless `port` says otherwise.

        For this package's own use.
        """
        if "port" in self.model_fields_set:
            return self
        return self.model_copy(update={"port": DEFAULT_PORT})

    @property
    def secret_token(self) -> SecretStr | None:
        """The token as it was set, to be masked in records, whether or not the server asks for it.

        For this package's own use.
        """
        return self.token or self._unused_token

    def for_own_use(self, **updates: Any) -> "Settings":
        """Return these settings for a server used only by the program that starts it.

        It listens on a free port, asks for no token, lists every tool under its own name, returns
        results whole, and records no calls. `updates` override this.
        """
        own = {
            "host": "127.0.0.1",
            "port": 0,
            "token": None,
            "gateway": False,
            "expose": "all",
            "max_result": None,
            "audit": False,
        }
        settings = self.model_copy(update={**own, **updates})
        settings._unused_token = self.token  # noqa: SLF001
        return settings

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources; the first that has a value wins. For this package's own use."""
        return (
            init_settings,
            Environment(settings_cls),
            Project(settings_cls),
            UserFile(settings_cls),
        )


def _rules_of(source: Environment | Project) -> Mapping[str, Permission]:
    return cast("Mapping[str, Permission]", source().get("permissions", {}))


def demo_settings(*, headed: bool | None) -> Settings:
    """Return settings for the demo plugin only, with a free port and a new profile."""
    return load_settings(headed=headed).for_own_use(
        plugins=(),
        plugin_folders=(),
        plugin_settings={},
        permissions={},
        profile=None,
        signed_in=None,
        webmcp=(),
        hands=False,
        secrets={},
    )


def settings_files() -> tuple[Path, ...]:
    """Return the paths of the settings files, whether or not they exist."""
    return Path("pyproject.toml").absolute(), user_file()


def load_settings(**given: Any) -> Settings:
    """Load the settings; arguments that are not None take precedence.

    Raises:
        ConfigError: A value is not valid; the text names it and the rule. Or the current directory,
            in which the project's settings are, was deleted.
    """
    working_dir()
    try:
        given = mergeable({name: each for name, each in given.items() if each is not None})
        settings = Settings(**given)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        lines = [_problem_text(each) + _source_text(each["loc"], given) for each in problems]
        raise ConfigError("A setting is not valid. " + "; ".join(lines)) from None
    except SettingsError as error:
        # Its cause contains the value, which may be a secret.
        field = re.search('field "([a-z_]+)"', str(error))
        name = "A setting in the environment" if field is None else f"OPENTABS_{field[1].upper()}"
        example = TABLES.get(field[1] if field else "", '["first", "second"]')
        raise ConfigError(f"{name} is not valid JSON. Write it like this: '{example}'") from None
    settings._given_rules = given.get("permissions", {})  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if settings.plugins or settings.plugin_folders:
        named = {*given} | {*Environment(Settings)()} | {*Project(Settings)()}
        installed = {"plugins", "plugin_folders"} - named
        settings._installed = frozenset(installed)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return settings


_UNKNOWN: Final = "there is no such setting"
# Replacements for pydantic's messages, which mention its inputs; by error type.
_PLAIN: Final = {
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "dataclass_type": "write a table",
    "dict_type": "write a table",
    "extra_forbidden": _UNKNOWN,
    "finite_number": "write a finite number",
    "float_parsing": "write a number without a unit, such as 2.5",
    "float_type": "write a number without a unit, such as 2.5",
    "greater_than": "write more than {gt:g}",
    "greater_than_equal": "write {ge} or more",
    "int_from_float": "write a whole number, such as 2",
    "int_parsing": "write a whole number, such as 2",
    "int_type": "write a whole number, such as 2",
    "less_than_equal": "write {le} or less",
    "literal_error": "write {expected}",
    "path_type": "write a path in quotes",
    "pattern_regex": "write a valid regular expression",
    "pattern_type": "write a regular expression in quotes",
    "string_type": "write a text in quotes",
    "tuple_type": 'write a list, such as ["first", "second"]',
    "unexpected_keyword_argument": _UNKNOWN,
}


def _source_text(path: Sequence[int | str], given: Mapping[str, Any]) -> str:
    """Return where the value at a path comes from, to follow what is wrong with it."""
    if _has(given, path):
        return ""  # the caller knows what it passed
    project, own = settings_files()
    if _has(Environment(Settings)(), path):
        return f" (from OPENTABS_{str(path[0]).upper()})"
    if _has(Project(Settings)(), path):
        return f" (from {project})"
    return f" (from {own})" if _has(UserFile(Settings)(), path) else ""


def _has(values: object, path: Sequence[int | str]) -> bool:
    """Return whether there is a value at a path, or something other than a table above it."""
    for key in path:
        if not isinstance(values, Mapping):
            return True
        if key not in values:
            return False
        values = cast("Mapping[object, object]", values)[key]
    return values != {}  # an empty table adds nothing to those of other sources


def _problem_text(problem: ErrorDetails) -> str:
    path = ".".join(map(str, problem["loc"]))
    plain = _PLAIN.get(problem["type"])
    if plain is None:
        text = rule_text(problem["msg"])
    elif plain == _UNKNOWN and len(problem["loc"]) == 1:
        hint = did_you_mean(nearest(path, Settings.model_fields))
        text = f"{plain} ({hint})" if hint else plain
    else:
        text = plain.format(**problem.get("ctx", {}))
    text = f"{path}: {text}"
    is_secret = problem["loc"][0] in ("plugin_settings", "token")  # a plugin's settings may be
    # A validator of ours says what is wrong, with the value if that helps.
    if plain == _UNKNOWN or problem["type"] == "value_error" or is_secret:
        return text
    return f"{text}, not {shorten(repr(problem['input']))}"
