"""Two tools instead of all, for agents with a small context: one finds tools, one calls them."""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import maxsize
from typing import Any, Final, Literal, cast

from mcp import types
from pydantic import BaseModel, ConfigDict, Field

from opentabs_py.calling.listing import Listing
from opentabs_py.core import failures
from opentabs_py.core.arguments import MAX_NAMES, ArgumentReader
from opentabs_py.core.page_arguments import TAB_ID
from opentabs_py.core.plugin_names import GATEWAY_CALL
from opentabs_py.core.text import did_you_mean, nearest, shorten
from opentabs_py.server.tools.registry import ToolRegistry

LIST: Final = "opentabs_list_tools"
CALL: Final = GATEWAY_CALL
# Claude Code defers tools until a search finds them, but these are the search.
ALWAYS_LOADED: Final = {"anthropic/alwaysLoad": True}
MOST_FOUND = 50  # tools per answer; the best matches come first
INSTRUCTIONS = f"""\
Find a tool with {LIST} by what it should do, ask the same tool for its schema by name, then \
run it with {CALL}."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Find(_Arguments):
    query: str | None = Field(
        default=None,
        description="What the tool should do, in words; the best match comes first. Leave out to "
        "list all tools.",
    )
    plugin: str | None = Field(default=None, description="Only the tools of this plugin.")
    ready: bool = Field(
        default=False, description="Only tools that work now, because a tab of their site is open."
    )
    detail: Literal["summary", "arguments", "full"] = Field(
        default="summary",
        description="How much to return about each tool: a line; also its arguments; or "
        "everything, with the schemas of its arguments and its result.",
    )
    names: list[str] | None = Field(
        default=None, max_length=MOST_FOUND, description="Describe these tools, in full."
    )


class _Call(_Arguments):
    name: str = Field(description=f"The tool's name, as {LIST} returns it.")
    arguments: dict[str, Any] = Field(
        default={}, description=f"Must match the tool's schema; get it from {LIST} with `names`."
    )


TOOLS: Final = [
    types.Tool(
        name=CALL,
        title="Call a tool",
        description=f"Run one of the tools that {LIST} finds, and return its result.",
        input_schema=_Call.model_json_schema(),
        _meta=ALWAYS_LOADED,
    ),
    types.Tool(
        name=LIST,
        title="Find tools",
        description="Find tools that run in the user's browser tabs, by what they do. Returns the "
        "name and a line about each, the best match first; `detail` or `names` returns more.",
        input_schema=_Find.model_json_schema(),
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
        _meta=ALWAYS_LOADED,
    ),
]

# The tool that is called limits the size of its arguments.
_READERS: Final = {
    tool.name: ArgumentReader(tool.name, tool.input_schema, limit=maxsize) for tool in TOOLS
}


def input_schema(name: str) -> dict[str, Any] | None:
    """Return the input schema of one of the two tools; None for any other name."""
    return next((tool.input_schema for tool in TOOLS if tool.name == name), None)


@dataclass(frozen=True, slots=True)
class FoundTools:
    """The answer of `opentabs_list_tools`."""

    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The call that `opentabs_call` requests."""

    name: str
    arguments: dict[str, Any]


def resolve(
    registry: ToolRegistry, name: str, arguments: Mapping[str, Any]
) -> FoundTools | Forwarded:
    """Interpret a call of one of the two tools.

    Raises:
        CallRefusedError: It is neither, its arguments are wrong, or a name is unknown.
    """
    if name == CALL:
        call = _Call.model_validate(_READERS[CALL].read(arguments))
        return Forwarded(call.name, call.arguments)
    if name == LIST:
        return FoundTools(_find(registry, _Find.model_validate(_READERS[LIST].read(arguments))))
    # The tool was called directly, perhaps by a client that remembers it from a full list.
    if registry.get(name) is not None:
        raise failures.only_by_gateway(name, CALL)
    raise failures.unknown_tool(name, [LIST, CALL])


def _find(registry: ToolRegistry, wanted: _Find) -> dict[str, Any]:
    # Some models fill in every argument; what is empty counts as left out.
    if wanted.names:
        return {"tools": [_in_full(registry.find(name).listing) for name in wanted.names]}
    if wanted.query is None or not wanted.query.strip():
        found = [tool.listing for tool in registry.tools]
    else:
        found = registry.search(wanted.query)
    if wanted.plugin:
        _check_plugin(registry, wanted.plugin)
        found = [each for each in found if each.owner == wanted.plugin]
    if wanted.ready:
        found = [each for each in found if registry.status(each.owner) in ("ready", None)]
    describe = _DESCRIBE[wanted.detail]
    answer: dict[str, Any] = {"tools": [describe(each) for each in found[:MOST_FOUND]]}
    if len(found) > MOST_FOUND:
        answer["more"] = (
            f"{len(found) - MOST_FOUND} more match; refine the query, or name a plugin: "
            + ", ".join(sorted({each.owner for each in found}))
        )
    return answer


def _check_plugin(registry: ToolRegistry, name: str) -> None:
    names = sorted({tool.listing.owner for tool in registry.all_tools})
    if name in names:
        return
    more = ", …" if len(names) > MAX_NAMES else ""
    listed = ", ".join(names[:MAX_NAMES]) + more or "none"
    hint = did_you_mean(nearest(name, names)) or f"there are: {listed}"
    text = f"there is no plugin {shorten(name)!r}; {hint}"
    raise failures.invalid_arguments(LIST, [("plugin", text)])


def _in_a_line(tool: Listing) -> dict[str, Any]:
    line = tool.summary or tool.description.strip().partition("\n")[0]
    return {"name": tool.name, "summary": shorten(line, 160)}


def _with_arguments(tool: Listing) -> dict[str, Any]:
    required = tool.input_schema.get("required", [])
    arguments = {
        f"{name}" if name in required else f"{name}?": _about(schema)
        for name, schema in tool.input_schema.get("properties", {}).items()
        if name != TAB_ID  # every plugin tool has it
    }
    return {**_in_a_line(tool), "arguments": arguments}


def _about(schema: Any) -> str:
    """Return a line about an argument."""
    if not isinstance(schema, dict):
        return ""
    known = cast("dict[str, Any]", schema)
    parts = [str(known["type"])] if "type" in known else []
    if "enum" in known:
        parts.append("one of " + ", ".join(map(str, known["enum"])))
    if "description" in known:
        parts.append(str(known["description"]))
    return shorten("; ".join(parts), 120)


def _in_full(tool: Listing) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        **({} if tool.output_schema is None else {"outputSchema": tool.output_schema}),
        **({} if tool.annotations is None else {"annotations": tool.annotations}),
    }


_DESCRIBE: Final = {"summary": _in_a_line, "arguments": _with_arguments, "full": _in_full}
