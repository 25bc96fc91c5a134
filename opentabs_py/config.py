"""Settings: command line > OPENTABS_* > pyproject.toml [tool.opentabs] > the user's file."""

import os
import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    PyprojectTomlConfigSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from opentabs_py.core.dispatch import Limits
from opentabs_py.core.progress import Pace
from opentabs_py.errors import ConfigError
from opentabs_py.places import user_file

DEFAULT_PORT = 8377
STARTED_BY = "OPENTABS_TEST_STARTED_BY"  # in the environment: the process that runs `opentabs test`
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _loopback(host: str) -> str:
    """Refuse to let other machines in: whoever connects can use the user's sessions."""
    address = "127.0.0.1" if host == "localhost" else host
    try:
        is_ours = ip_address(address).is_loopback
    except ValueError:
        is_ours = False
    if not is_ours:
        raise ValueError("other machines could connect; give 127.0.0.1, another 127.x.y.z or ::1")
    return address


def _token(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if len(text) < 16 or not re.fullmatch(r"[!-~]+", text):
        raise ValueError("write 16 characters or more, as `openssl rand -hex 16` gives them")
    return token


def _directories(value: object) -> object:
    return [each for each in value.split(os.pathsep) if each] if isinstance(value, str) else value


class Settings(BaseSettings):
    """What a run can be told; each field is also `OPENTABS_<NAME>` in the environment.

    Attributes:
        idle_timeout: Seconds of silence that end a call.
        ceiling: Seconds that a call may take, whatever it reports.
        host: Where MCP clients and the extension connect: an address of this machine's own.
        port: The same; 0 takes a free one.
        token: What MCP clients must present over HTTP; every program of this machine may connect
            when not given.
        gateway: Serve two tools in place of all: one that finds them, one that calls them.
        strict_output: Fail calls whose value breaks the tool's output schema; else it is logged.
        debug: Send MCP clients the stack traces of tools' errors.
        progress_burst: Progress notifications of a call that a client is sent at once, at most.
        progress_rate: How many more it is sent per second.
        keepalive: Seconds of silence after which a client is sent the last progress again.
        late_progress: Send clients of the initialize era the streams of Python tools as progress
            after the call's response too, which MCP does not know.
        message_limit: The longest input or result, in characters of JSON.
        chromium: The Chromium to launch; found when not given.
        profile: The browser's user data directory; a fresh one when not given.
        headed: Show the browser's window.
        no_sandbox: Run Chromium without its sandbox, where the system does not let it have one.
        plugins: Directories of built plugins; in the environment, joined as PATH is.
        plugin_folders: Folders that hold such directories, which may come and go; the same.
        settings: Values of plugins' own settings, by plugin and key; in the environment, JSON. The
            sources are merged key by key.
    """

    model_config = SettingsConfigDict(
        env_prefix="OPENTABS_",
        extra="forbid",  # a misspelt name in a file is told, not passed over
        pyproject_toml_table_header=("tool", "opentabs"),
    )

    idle_timeout: Seconds = 30.0
    ceiling: Seconds = 300.0
    host: Annotated[str, AfterValidator(_loopback)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    token: Annotated[SecretStr, AfterValidator(_token)] | None = None
    gateway: bool = False
    strict_output: bool = False
    debug: bool = False
    progress_burst: Annotated[int, Field(ge=1)] = 20
    progress_rate: Seconds = 10.0
    keepalive: Seconds | None = None
    late_progress: bool = True
    message_limit: Annotated[int, Field(ge=1024, le=512 * 1024 * 1024)] = 64 * 1024 * 1024
    chromium: Path | None = None
    profile: Path | None = None
    headed: bool = False
    no_sandbox: bool = False
    plugins: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_directories)] = ()
    plugin_folders: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_directories)] = ()
    settings: dict[str, dict[str, Any]] = Field(default={}, repr=False)  # some are secrets

    @property
    def limits(self) -> Limits:
        """The two timers of a call."""
        return Limits(idle=self.idle_timeout, ceiling=self.ceiling)

    @property
    def url_host(self) -> str:
        """The host as URLs have it (RFC 3986, section 3.2.2)."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def pace(self) -> Pace:
        """How often a client is sent progress."""
        return Pace(self.progress_burst, self.progress_rate, self.keepalive)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Put the sources in order, the first that has a value wins."""
        return (
            init_settings,
            env_settings,
            PyprojectTomlConfigSettingsSource(settings_cls),
            TomlConfigSettingsSource(settings_cls, toml_file=user_file()),
        )


def demo_settings(*, headed: bool | None) -> Settings:
    """Gather the settings for the demo plugin alone, on a free port, in a fresh profile."""
    own: dict[str, Any] = {
        "plugins": (),
        "plugin_folders": (),
        "settings": {},
        "profile": None,
        "host": "127.0.0.1",
        "port": 0,
        "token": None,
    }
    return load_settings(headed=headed).model_copy(update=own)


def settings_files() -> tuple[Path, ...]:
    """Return the files that settings come from, whether they are there or not."""
    return Path("pyproject.toml").absolute(), user_file()


def load_settings(**given: Any) -> Settings:
    """Gather the settings; what is given here and is not None wins.

    Raises:
        ConfigError: A value cannot be used; the text names it and the rule.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        lines = [_fault_text(fault) for fault in error.errors(include_url=False)]
        raise ConfigError("A setting cannot be used. " + "; ".join(lines)) from None
    except SettingsError:
        # Its text does not say why, and its cause holds the value, which may be a secret.
        raise ConfigError(
            "OPENTABS_SETTINGS is not JSON. Write an object of objects, as in "
            """'{"chat": {"site": "https://example.com"}}'."""
        ) from None
    except ValueError as error:  # TOML that does not parse
        raise ConfigError(f"A settings file cannot be read: {error}") from error


# In place of pydantic's words, which speak of its inputs; by the type of its error.
_PLAIN: Final = {
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "extra_forbidden": "there is no such setting",
    "finite_number": "write a finite number",
    "float_parsing": "write a number without a unit, as in 2.5",
    "float_type": "write a number without a unit, as in 2.5",
    "greater_than": "write more than {gt:g}",
    "greater_than_equal": "write {ge} or more",
    "int_from_float": "write a whole number, as in 2",
    "int_parsing": "write a whole number, as in 2",
    "int_type": "write a whole number, as in 2",
    "less_than_equal": "write {le} or less",
}


def _fault_text(fault: ErrorDetails) -> str:
    path = ".".join(map(str, fault["loc"]))
    plain = _PLAIN.get(fault["type"])
    if plain is None:
        said = fault["msg"].removeprefix("Value error, ")
    else:
        said = plain.format(**fault.get("ctx", {}))
    text = f"{path}: {said}"
    if fault["type"] == "extra_forbidden":
        return text
    # What stands in the place of a plugin's settings may be a secret.
    return (
        text
        if fault["loc"][:1] in (("settings",), ("token",))
        else f"{text}, not {fault['input']!r}"
    )
