"""Where settings come from, besides the command line: the environment and two files."""

import os
from collections.abc import Generator, Mapping
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
from opentabs_py.errors import ConfigError

# What is merged key by key over all sources, with an example in JSON.
TABLES: Final[Mapping[str, str]] = {
    "permissions": '{"default": "ask", "chat": "auto"}',
    "scrub": '{"texts": ["Ada Lovelace"]}',
    "plugin_settings": '{"chat": {"site": "https://example.com"}}',
}


class Environment(EnvSettingsSource):
    """`OPENTABS_<NAME>` for each setting."""

    def __call__(self) -> dict[str, Any]:
        """Return its values."""
        return _checked(super().__call__())


class Project(PyprojectTomlConfigSettingsSource):
    """`[tool.opentabs]` in the current directory's pyproject.toml."""

    def __init__(self, settings: type[BaseSettings]) -> None:
        try:
            with _readable(Path("pyproject.toml").absolute()):
                super().__init__(settings)
        except AttributeError:  # the library walks down the tables without looking
            raise ConfigError("In pyproject.toml, [tool.opentabs] is not a table.") from None

    def __call__(self) -> dict[str, Any]:
        """Return its values."""
        return _checked(super().__call__())


class UserFile(TomlConfigSettingsSource):
    """The user's own file; relative paths in it start in its directory."""

    def __init__(self, settings: type[BaseSettings]) -> None:
        file = user_file()
        self._directory = file.parent
        fields = settings.model_fields.items()
        self._paths = [name for name, field in fields if _has_path(field.annotation)]
        with _readable(file):
            super().__init__(settings, toml_file=file)

    def __call__(self) -> dict[str, Any]:
        """Return its values."""
        values = _checked(super().__call__())
        found = {name: self._anchored(values[name]) for name in self._paths if name in values}
        return {**values, **found}

    def _anchored(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._anchored(each) for each in cast("list[object]", value)]
        if not isinstance(value, str) or value.startswith("~"):
            return value
        if os.pathsep in value:
            return self._anchored([each for each in value.split(os.pathsep) if each])
        return str(self._directory / value)


def _has_path(hint: Any) -> bool:
    return hint is Path or any(_has_path(each) for each in get_args(hint))


@contextmanager
def _readable(file: Path) -> Generator[None]:
    """Name the file in errors: there are two, and one of them is in another directory."""
    try:
        if file.is_dir():  # the library would take it for no file
            raise ConfigError(f"{file} is a directory. Settings are read from a file of that name.")
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"Cannot read the settings in {file}: {why}") from error


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse what is not a table where there must be one; merging would drop it silently."""
    for name, example in TABLES.items():
        if not isinstance(values.get(name, {}), Mapping):
            raise ConfigError(
                f"A setting is not valid. {name}: write a table. As JSON, one is: {example}"
            )
    return values
