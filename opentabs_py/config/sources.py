"""Where settings come from, besides the command line: the environment and two files."""

import os
import stat
import sys
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast, get_args

from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PyprojectTomlConfigSettingsSource,
    TomlConfigSettingsSource,
)

from opentabs_py.config.paths import user_file
from opentabs_py.core.consent import flat_rules
from opentabs_py.errors import ConfigError

_SHARED: Final = stat.S_IWOTH | stat.S_ISVTX  # everybody may add files, as in /tmp
TOML_ENCODING: Final = "utf-8-sig"  # some editors on Windows begin a file with a byte order mark
# What is merged key by key over all sources, with an example in JSON.
TABLES: Final[Mapping[str, str]] = {
    "permissions": '{"default": "ask", "chat": "auto"}',
    "scrub": '{"texts": ["Ada Lovelace"]}',
    "secrets": '{"SITE_PASSWORD": ["https://shop.example/*"]}',
    "plugin_settings": '{"chat": {"site": "https://example.com"}}',
}


class Environment(EnvSettingsSource):
    """`OPENTABS_<NAME>` for each setting."""

    def __call__(self) -> dict[str, Any]:
        """Return its values."""
        return _checked(super().__call__(), "OPENTABS_PERMISSIONS")


class _TomlFile(TomlConfigSettingsSource):
    def _read_file(self, file_path: Any) -> dict[str, Any]:
        return tomllib.loads(file_path.read_text(encoding=TOML_ENCODING))


class Project(_TomlFile, PyprojectTomlConfigSettingsSource):
    """`[tool.opentabs]` in the current directory's pyproject.toml."""

    def __init__(self, settings: type[BaseSettings]) -> None:
        self._file = Path("pyproject.toml").absolute()
        try:
            with _readable(self._file):
                super().__init__(settings)
        except AttributeError:  # the library walks down the tables without looking
            raise ConfigError("In pyproject.toml, [tool.opentabs] is not a table.") from None
        if self.toml_data and _may_be_planted(self._file):
            raise ConfigError(
                f"{self._file} is another user's, in a directory that all users share. It has "
                "settings for OpenTabs, which can run programs in your name. Run this in a "
                "directory of yours."
            )

    def __call__(self) -> dict[str, Any]:
        """Return its values."""
        return _checked(super().__call__(), self._file)


class UserFile(_TomlFile):
    """The user's own file; relative paths in it start in its directory."""

    def __init__(self, settings: type[BaseSettings]) -> None:
        self._file = user_file()
        fields = settings.model_fields.items()
        self._paths = [name for name, field in fields if _has_path(field.annotation)]
        with _readable(self._file):
            super().__init__(settings, toml_file=self._file)

    def __call__(self) -> dict[str, Any]:
        """Return its values."""
        values = _checked(super().__call__(), self._file)
        found = {name: self._anchored(values[name]) for name in self._paths if name in values}
        return {**values, **found}

    def _anchored(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._anchored(each) for each in cast("list[object]", value)]
        if not isinstance(value, str) or value.startswith("~"):
            return value
        if os.pathsep in value:
            return self._anchored([each for each in value.split(os.pathsep) if each])
        return str(self._file.parent / value)


def _has_path(hint: Any) -> bool:
    return hint is Path or any(_has_path(each) for each in get_args(hint))


def _may_be_planted(file: Path) -> bool:
    """Return whether a file is another user's, in a directory that all share, such as /tmp."""
    if sys.platform == "win32":
        return False
    is_shared = file.parent.stat().st_mode & _SHARED == _SHARED
    return is_shared and file.stat().st_uid not in (os.geteuid(), 0)


@contextmanager
def _readable(file: Path) -> Generator[None]:
    """Name the file in errors: there are two, and one of them is in another directory."""
    try:
        if file.is_dir():  # the library would take it for no file
            raise ConfigError(f"{file} is a directory. Settings are read from a file of that name.")
        yield
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"Cannot read the settings in {file}: it is not in UTF-8. Save it in that encoding."
        ) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"Cannot read the settings in {file}: {why}") from error


def _checked(values: dict[str, Any], source: object) -> dict[str, Any]:
    """Refuse what merging would drop silently: what should be a table, and rules that are twice."""
    values = mergeable(values, f" (from {source})")
    for name, example in TABLES.items():
        if not isinstance(values.get(name, {}), Mapping):
            raise ConfigError(
                f"A setting is not valid. {name}: write a table. As JSON, one is: {example}"
            )
    return values


def table_of_secrets(value: object) -> object:
    """Return a table of secrets; a list of names stands for one in which each is for all pages."""
    if not isinstance(value, list | tuple):
        return value
    names = cast("Sequence[object]", value)
    return dict.fromkeys(names, "all") if all(isinstance(each, str) for each in names) else names


def mergeable(values: dict[str, Any], source_text: str = "") -> dict[str, Any]:
    """Return the values of a source in the forms in which they are merged with others.

    Rules have their whole names, and secrets are a table.

    Raises:
        ConfigError: There are two rules of one name.
    """
    if "secrets" in values:
        values = {**values, "secrets": table_of_secrets(values["secrets"])}
    rules = values.get("permissions")
    if not isinstance(rules, Mapping):
        return values
    try:
        return {**values, "permissions": flat_rules(cast("Mapping[str, Any]", rules))}
    except ValueError as error:
        raise ConfigError(f"A setting is not valid. permissions: {error}{source_text}.") from None
