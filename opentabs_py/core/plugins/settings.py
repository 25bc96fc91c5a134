"""A plugin's settings: the declarations, and the values the user sets.

A plugin declares its settings as `configSchema`, by key. Values come from settings files, the
environment and the command line. They reach the page before the plugin's adapter does, and URL
settings decide which pages the plugin runs on. A `string` may be a secret, so no text in this
module shows its value.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, cast, get_args
from urllib.parse import urlsplit

from pydantic import JsonValue

from opentabs_py.core.hosts import url_host
from opentabs_py.core.json_numbers import MAX_SAFE_INTEGER
from opentabs_py.core.schemas.checker import JsonObject
from opentabs_py.core.sites.instances import find_namesakes
from opentabs_py.core.sites.match_patterns import parse as parse_match_pattern
from opentabs_py.core.text import did_you_mean, nearest, quantity, shorten, show_value
from opentabs_py.errors import PluginError

SettingType = Literal["url", "string", "number", "boolean", "select"]
SettingProblem = tuple[tuple[int | str, ...], str]
"""The path of a problem in the declared settings, and its description."""

_TYPES: Final[tuple[SettingType, ...]] = get_args(SettingType)
_TEXTS: Final = ("label", "description", "placeholder")
LONGEST_INSTANCE: Final = 64  # characters; agents read every instance name in every tool's schema
_ASSIGNMENT: Final = re.compile(r"(?P<plugin>[^.=]+)\.(?P<key>[^=]+)=(?P<value>.*)", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?(\d+)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_URL_SECRETS: Final = re.compile(r"(?<=//)[^/?#]*@|[?#].*", re.DOTALL)
_EXAMPLES: Final[Mapping[SettingType, tuple[str, str]]] = {
    "url": ("https://example.com", '"https://example.com"'),
    "string": ("text", '"text"'),
    "number": ("10", "10"),
    "boolean": ("true", "true"),
}
_ALLOWED: Final[Mapping[SettingType, str]] = {
    "url": "an http or https URL, or a table of named ones",
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
}


class Typed(str):
    """A value typed on a command line: the setting's type decides how to interpret it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as its plugin declares it.

    Attributes:
        label: Its name for users.
        default: Its value when none is set, or None.
        options: The values a `select` may have.
    """

    key: str
    type: SettingType
    label: str | None
    required: bool
    default: JsonValue
    options: tuple[str, ...]


# --- what is declared ---


def find_schema_problems(declared: Mapping[str, JsonValue]) -> Iterator[SettingProblem]:
    """Yield the problems in the settings that a plugin declares; unknown members are allowed."""
    for key, about in declared.items():
        if isinstance(about, dict):  # anything else has already been reported
            yield from (((key, *path), why) for path, why in _setting_problems(about))


def _setting_problems(about: JsonObject) -> Iterator[SettingProblem]:
    kind = about.get("type")
    if kind not in _TYPES:
        types = ", ".join(f'"{each}"' for each in _TYPES)
        what = "is missing" if kind is None else f"is {show_value(kind)}, not a valid setting type"
        yield ("type",), f"{what}; write one of {types}"
    for name in _TEXTS:
        if not isinstance(about.get(name), str | None):
            yield (
                (name,),
                f"is {show_value(about[name])}, not a string; write a string or leave it out",
            )
    if not isinstance(about.get("required"), bool | None):
        yield ("required",), f"is {show_value(about['required'])}; write true or false"
    options = about.get("options")
    if kind == "select":
        problems = list(_option_problems(options))
        yield from problems
        if problems:
            return
    if kind in _TYPES and about.get("default") is not None:
        setting = _setting("", about)
        try:
            _read(setting, about["default"])
        except ValueError:
            allowed = _allowed(setting)
            yield ("default",), f"is not {allowed}, as its type requires; write one or leave it out"


def _option_problems(options: JsonValue) -> Iterator[SettingProblem]:
    if not isinstance(options, list) or not options:
        yield ("options",), 'is not a list of choices; write one, such as ["daily", "weekly"]'
        return
    for index, option in enumerate(options):
        if not isinstance(_option_value(option), str):
            yield (
                ("options", index),
                f'is {show_value(option)}; write a string, or {{"value": ..., "label": ...}}',
            )


def _option_value(option: JsonValue) -> JsonValue:
    return option.get("value") if isinstance(option, dict) else option


def declared_settings(schema: Mapping[str, JsonObject]) -> dict[str, Setting]:
    """Return the settings that a validated `configSchema` declares, by key."""
    return {key: _setting(key, about) for key, about in schema.items()}


def _setting(key: str, about: JsonObject) -> Setting:
    options = about.get("options")
    values = [_option_value(each) for each in options] if isinstance(options, list) else []
    label = about.get("label") or about.get("description")
    return Setting(
        key=key,
        type=cast(SettingType, about["type"]),
        label=label if isinstance(label, str) else None,
        required=about.get("required") is True,
        default=about.get("default"),
        options=tuple(value for value in values if isinstance(value, str)),
    )


def possible_secrets(
    schema: Mapping[str, JsonObject], values: Mapping[str, JsonValue]
) -> Iterator[str]:
    """Yield the values of settings that may be secrets: no plugin says which strings are."""
    for key, about in schema.items():
        value = values.get(key)
        if about.get("type") == "string" and isinstance(value, str):
            yield value


# --- what is given ---


def parse_assignment(text: str) -> tuple[str, str, Typed]:
    """Parse `plugin.key=value`, as typed on the command line.

    Raises:
        ValueError: It is not in that form.
    """
    found = _ASSIGNMENT.fullmatch(text)
    if found is None:
        # Do not quote the text: it may be a secret without its key.
        raise ValueError("write PLUGIN.KEY=VALUE, for example --set chat.site=https://example.com")
    return found["plugin"], found["key"], Typed(found["value"])


def resolve_values(
    plugin: str, schema: Mapping[str, JsonObject], given: Mapping[str, object]
) -> dict[str, JsonValue]:
    """Return the value of each setting: the given one, or else its default.

    Args:
        plugin: The plugin's name, used in errors.
        schema: The plugin's `configSchema`.
        given: Values by key, as parsed from TOML or JSON, or `Typed`; None means not set.

    Raises:
        PluginError: They are not valid; the text has a line for each problem.
    """
    declared = declared_settings(schema)
    values: dict[str, JsonValue] = {}
    problems = [_unknown_key(plugin, key, declared) for key in given if key not in declared]
    for key, setting in declared.items():
        value = given.get(key)
        if value is None:
            if setting.default is not None:
                values[key] = setting.default
            elif setting.required:
                what = f" ({shorten(setting.label)})" if setting.label else ""
                how = _how_to_give(plugin, setting)
                problems.append(
                    f"{plugin}.{key} is missing{what}; it must be {_allowed(setting)}; {how}"
                )
            continue
        try:
            values[key] = _read(setting, value)
        except ValueError as error:
            how = _how_to_give(plugin, setting)
            problems.append(f"{plugin}.{key} {error}, not {_allowed(setting)}; {how}")
    if problems:
        count = quantity(len(problems), "problem")
        head = f"The settings of the plugin {plugin!r} are not valid; they have {count}:"
        raise PluginError("\n  ".join([head, *problems]))
    return values


def _unknown_key(plugin: str, key: str, declared: Mapping[str, Setting]) -> str:
    has = f"it has {', '.join(declared)}" if declared else "it has none; leave it out"
    hint = did_you_mean(nearest(key, declared)) or has
    return f"{plugin}.{key} is set, but the plugin has no such setting; {hint}"


def _read(setting: Setting, given: object) -> JsonValue:
    match setting.type:
        case "number":
            return _read_number(given)
        case "string":
            return _read_string(given, setting)
        case "url":
            return _read_urls(given)
        case "select":
            return _read_option(given, setting)
        case _:
            return _read_boolean(given)


def _read_string(given: object, setting: Setting) -> str:
    if isinstance(given, str) and (given or not setting.required):
        return str(given)
    raise ValueError("is empty" if given == "" else f"is {_kind(given)}")


def _read_option(given: object, setting: Setting) -> str:
    if given in setting.options:
        return str(given)
    raise ValueError(f"is {_show_given(given)}")


def _read_boolean(given: object) -> bool:
    if isinstance(given, Typed) and given in ("true", "false"):
        return given == "true"
    if isinstance(given, bool):
        return given
    raise ValueError(f"is {_show_given(given)}")


def _read_urls(given: object) -> JsonValue:
    if isinstance(given, Typed) and given.startswith("{"):
        given = _read_table(given)
    if isinstance(given, dict):
        return _read_instances(cast(dict[str, object], given))
    return _read_url(given)


def _read_url(given: object) -> str:
    if isinstance(given, str):
        try:
            url_pattern(given)
        except ValueError:
            raise ValueError(f"is {show_value(_URL_SECRETS.sub('…', given))}") from None
        return str(given)
    raise ValueError(f"is {_show_given(given)}")


def _read_table(given: str) -> object:
    try:
        return json.loads(given)
    except (ValueError, RecursionError):  # the parser's message may show a secret
        raise ValueError("is a table that is not JSON") from None


def _read_instances(given: Mapping[str, object]) -> JsonObject:
    urls: dict[str, str] = {}
    for name, url in given.items():
        if not name.strip() or not name.isprintable() or len(name) > LONGEST_INSTANCE:
            raise ValueError(f"has an instance named {show_value(name)}")
        try:
            urls[name] = _read_url(url)
        except ValueError as error:
            raise ValueError(f"has an instance {show_value(name)} that {error}") from None
    if not urls:
        raise ValueError("is an empty table")
    if same := find_namesakes(urls):
        raise ValueError(f"has one address for both {' and '.join(map(show_value, same))}")
    return {**urls}


def _read_number(given: object) -> int | float:
    number = given
    if isinstance(given, Typed):
        found = _NUMBER.fullmatch(given)
        number = float(given) if found else None
        whole = found is not None and found[2] is None and found[3] is None
        if whole and isinstance(number, float) and abs(number) <= MAX_SAFE_INTEGER:
            return int(number)
    if isinstance(number, int | float) and not isinstance(number, bool) and isfinite(number):
        return number
    raise ValueError(f"is {_show_given(given)}")


def _allowed(setting: Setting) -> str:
    if setting.type == "select":
        return "one of " + ", ".join(map(show_value, setting.options))
    return _ALLOWED[setting.type]


def _how_to_give(plugin: str, setting: Setting) -> str:
    if setting.type == "select":
        typed, written = setting.options[0], show_value(setting.options[0])
    else:
        typed, written = _EXAMPLES[setting.type]
    return (
        f"set it with --set {plugin}.{setting.key}={typed}, or as {setting.key} = {written} "
        f"under [plugin_settings.{plugin}] in a settings file"
    )


def _show_given(given: object) -> str:
    scalar = isinstance(given, str | bool | int | float)
    return show_value(cast(JsonValue, given)) if scalar else _kind(given)


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or a time"  # the only other types in TOML


# --- what follows from it ---


def url_pattern(url: str) -> str:
    """Return the match pattern of a URL's whole site, on every port.

    Chrome's own match patterns have no ports.

    Raises:
        ValueError: It is not an http or https URL.
    """
    if any(c.isspace() or not c.isprintable() for c in url):
        raise ValueError(f"{url!r} contains a space")
    parts = urlsplit(url)
    host = parts.hostname
    if parts.scheme not in ("http", "https") or not host or "*" in host:
        raise ValueError(f"{url!r} is not an http or https URL")
    _ = parts.port  # raises ValueError if it is not valid
    if not host.isascii():
        host = host.encode("idna").decode()  # the form Chrome uses
    pattern = f"{parts.scheme}://{url_host(host)}/*"
    parse_match_pattern(pattern)
    return pattern


def url_setting_patterns(
    schema: Mapping[str, JsonObject], values: Mapping[str, JsonValue]
) -> tuple[str, ...]:
    """Return the match patterns that the `url` settings add to a plugin's own."""
    given = [values.get(key) for key, about in schema.items() if about.get("type") == "url"]
    urls = [url for each in given for url in (each.values() if isinstance(each, dict) else [each])]
    return tuple(dict.fromkeys(url_pattern(url) for url in urls if isinstance(url, str)))


def find_unknown_plugins(
    given: Mapping[str, Mapping[str, object]], known: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Find the plugins that have settings but do not exist.

    Returns:
        Those named on the command line, and the rest; each as text with the closest names.
    """
    typed: list[str] = []
    written: list[str] = []
    for plugin, values in given.items():
        if plugin not in known:
            is_typed = any(isinstance(value, Typed) for value in values.values())
            (typed if is_typed else written).append(_name_with_nearest(plugin, known))
    return typed, written


def _name_with_nearest(plugin: str, known: Iterable[str]) -> str:
    hint = did_you_mean(nearest(plugin, known))
    return f"{plugin!r} ({hint})" if hint else repr(plugin)
