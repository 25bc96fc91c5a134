"""The arguments every plugin tool accepts besides its own: which tab, and which instance."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue

from opentabs_py.core.arguments import is_closed
from opentabs_py.core.failures import invalid_arguments
from opentabs_py.core.plugin_names import TABS_LIST
from opentabs_py.core.schemas.checker import JsonObject
from opentabs_py.core.text import did_you_mean, nearest, show_value

TAB_ID: Final = "tabId"
INSTANCE: Final = "instance"


def listed_schema(schema: JsonObject, instances: Sequence[str] = ()) -> JsonObject:
    """Return a tool's input schema with the optional `tabId` that every plugin tool accepts.

    If there are several instances, a required `instance` names one. A closed schema is marked
    `additionalProperties: false`.
    """
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)  # checked when the manifest was read
    added: JsonObject = {
        TAB_ID: {
            "type": "integer",
            "description": f"The browser tab to use, from {TABS_LIST}. Default: the active tab.",
        }
    }
    listed: JsonObject = {**schema}
    if instances:
        added[INSTANCE] = {
            "type": "string",
            "enum": list(instances),
            "description": "Which of the user's instances of the site to use.",
        }
        required = schema.get("required")
        listed["required"] = [*(required if isinstance(required, list) else []), INSTANCE]
    listed["properties"] = {**properties, **added}
    if is_closed(schema):
        listed["additionalProperties"] = False
    return listed


def split_tab_id(tool: str, arguments: Mapping[str, JsonValue]) -> tuple[int | None, JsonObject]:
    """Return the `tabId` of a call's arguments, and the arguments without it.

    Raises:
        CallRefusedError: It is not an integer.
    """
    tab_id = read_tab_id(tool, arguments)
    return tab_id, {name: value for name, value in arguments.items() if name != TAB_ID}


def read_tab_id(tool: str, arguments: Mapping[str, Any]) -> int | None:
    """Return the `tabId` of a call's arguments; None if it is omitted, or null.

    Raises:
        CallRefusedError: It is not an integer.
    """
    tab = arguments.get(TAB_ID)
    if isinstance(tab, float) and tab.is_integer():
        tab = int(tab)  # JSON Schema accepts 7.0 as an integer, and some clients send that
    if tab is None or (isinstance(tab, int) and not isinstance(tab, bool)):
        return tab
    why = (
        f"{TAB_ID} is {show_value(tab)}, which is not an integer; "
        "pass a tab's number, or leave it out to use the active tab"
    )
    raise invalid_arguments(tool, [(TAB_ID, why)])


def split_instance(
    tool: str, arguments: Mapping[str, JsonValue], instances: Sequence[str]
) -> tuple[str | None, JsonObject]:
    """Return the `instance` of a call's arguments, and the arguments without it.

    If there is nothing to choose from, it is an argument like any other.

    Raises:
        CallRefusedError: There are several instances, and it names none of them.
    """
    rest = dict(arguments)
    if not instances:
        return None, rest
    name = rest.pop(INSTANCE, None)
    if isinstance(name, str) and name in instances:
        return name, rest
    choice = f"pass one of {', '.join(map(repr, instances))}"
    if name is None:
        raise invalid_arguments(tool, [(INSTANCE, f"{INSTANCE} is missing; {choice}")])
    why = f"{INSTANCE} is {show_value(name)}, which is not an instance"
    hint = did_you_mean(nearest(name, instances)) if isinstance(name, str) else ""
    why = f"{why} ({hint}); {choice}" if hint else f"{why}; {choice}"
    raise invalid_arguments(tool, [(INSTANCE, why)])
