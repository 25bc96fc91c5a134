"""Change the user's settings file, leaving everything else in it as it is, comments included.

tomlkit is imported when a setting changes, because most servers never change one.
"""

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from opentabs_py.config.files import changing, write_whole
from opentabs_py.config.paths import user_file
from opentabs_py.config.sources import TOML_ENCODING
from opentabs_py.core.consent import Permission, parse_rules
from opentabs_py.directories import create_private
from opentabs_py.errors import ConfigError

Table = MutableMapping[str, Any]


def change_settings(change: Callable[[Table], None], *, file: Path | None = None) -> None:
    """Change the user's settings file, which is created if it does not exist.

    Args:
        change: Changes the settings in place.
        file: The file; by default, the user's own.

    Raises:
        ConfigError: It is not valid TOML, or cannot be read or written.
    """
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    link = file or user_file()
    # The file itself, if it is a link: users keep theirs elsewhere.
    path = link.resolve()
    try:
        for directory in (link.parent, path.parent):
            create_private(directory)
        with changing(link):
            text = ""
            with suppress(FileNotFoundError):
                text = path.read_text(encoding=TOML_ENCODING)
            document = tomlkit.parse(text)
            change(document)
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
            write_whole(path, tomlkit.dumps(document).encode(), mode=mode)
    except (OSError, ValueError, TOMLKitError) as error:
        why = isinstance(error, OSError) and error.strerror
        raise ConfigError(f"Cannot change the settings in {path}: {why or error}.") from None


def set_permission(rule: str, permission: Permission, *, file: Path | None = None) -> None:
    """Set a permission in the user's settings file; the arguments and errors are as above.

    Args:
        rule: `default`, a plugin, or `plugin.tool`; for Python tools, their module instead.
        permission: The permission.
        file: The file; by default, the user's own.
    """

    def change(settings: Table) -> None:
        parse_rules({rule: permission})
        places = [
            (table, name)
            for table, name in _places(table_in(settings, "permissions"), rule)
            if not isinstance(table.get(name), MutableMapping)
        ]
        if not places:
            raise ConfigError(
                f"Cannot set one permission for {rule}: the settings file sets permissions of its "
                "tools, one by one. Change them there."
            )
        for table, name in [each for each in places if each[1] in each[0]] or places[:1]:
            table[name] = permission

    change_settings(change, file=file)


def _places(rules: Table, rule: str) -> Iterator[tuple[Table, str]]:
    """Return where a rule may be: in this table, or in one of those in it (`[slack]`)."""
    for name, below in rules.items():
        if isinstance(below, MutableMapping) and rule.startswith(f"{name}."):
            yield from _places(cast("Table", below), rule.removeprefix(f"{name}."))
    yield rules, rule


def table_in(settings: Table, name: str) -> Table:
    """Return a table of the settings, added if it is missing.

    Raises:
        ConfigError: The settings have a value of that name that is not a table.
    """
    import tomlkit  # noqa: PLC0415

    found = settings.setdefault(name, tomlkit.table())
    if not isinstance(found, MutableMapping):
        raise ConfigError(f"{name} is not a table in the settings. Write [{name}].")
    return cast("Table", found)
