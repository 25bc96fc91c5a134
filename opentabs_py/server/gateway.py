"""Two tools instead of all, for agents with a small context: one finds tools, one calls them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp import types
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opentabs_py.calling.tool import Listing
from opentabs_py.core import failures
from opentabs_py.core.text import path_text, shorten
from opentabs_py.server.registry import ToolRegistry

LIST: Final = "opentabs_list_tools"
CALL: Final = "opentabs_call"
MOST_FOUND = 50  # tools per answer; more words in the query narrow it down
INSTRUCTIONS = f"""\
Many tools run inside the user's own browser tabs, with the user's session. Find one with \
{LIST}, ask the same tool for its schema by name, then run it with {CALL}. A tool needs a tab \
of its site to be open and signed in; an error says so when there is none."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Find(_Arguments):
    query: str | None = Field(
        default=None,
        description="Words that the name or description must contain, in any order. Leave out to "
        "list all tools.",
    )
    names: list[str] | None = Field(
        default=None,
        max_length=MOST_FOUND,
        description="Tools to describe in full, with the schemas of their arguments and results.",
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
    ),
    types.Tool(
        name=LIST,
        title="Find tools",
        description="Find tools that run in the user's browser tabs. Without `names`: the name and "
        "a one-line summary of each match. With `names`: everything about those tools.",
        input_schema=_Find.model_json_schema(),
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
]


def input_schema(name: str) -> dict[str, Any] | None:
    """Return the input schema of one of the two tools; None for any other name."""
    return next((tool.input_schema for tool in TOOLS if tool.name == name), None)


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of `opentabs_list_tools`."""

    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The call that `opentabs_call` requests."""

    name: str
    arguments: dict[str, Any]


def resolve(registry: ToolRegistry, name: str, arguments: Mapping[str, Any]) -> Found | Forwarded:
    """Interpret a call of one of the two tools.

    Raises:
        CallRefusedError: It is neither, its arguments are wrong, or a name is unknown.
    """
    try:
        if name == CALL:
            call = _Call.model_validate(arguments)
            return Forwarded(call.name, call.arguments)
        if name == LIST:
            return Found(_find(registry, _Find.model_validate(arguments)))
    except ValidationError as error:
        faults = [(path_text(each["loc"]), each["msg"]) for each in error.errors()]
        raise failures.invalid_arguments(name, faults) from None
    # The tool was called directly, perhaps by a client that remembers it from a full list.
    if registry.get(name) is not None:
        raise failures.only_by_gateway(name, CALL)
    raise failures.unknown_tool(name, [LIST, CALL])


def _find(registry: ToolRegistry, wanted: _Find) -> dict[str, Any]:
    if wanted.names is not None:
        return {"tools": [_in_full(registry.find(name).listing) for name in wanted.names]}
    words = (wanted.query or "").casefold().split()
    listings = [tool.listing for tool in registry.tools]
    found = [each for each in listings if all(word in _text(each) for word in words)]
    answer: dict[str, Any] = {"tools": [_in_a_line(each) for each in found[:MOST_FOUND]]}
    if len(found) > MOST_FOUND:
        answer["more"] = (
            f"{len(found) - MOST_FOUND} more match; add words to the query. Plugins that match: "
            + ", ".join(sorted({each.owner for each in found}))
        )
    return answer


def _text(tool: Listing) -> str:
    return f"{tool.name} {tool.title} {tool.description}".casefold()


def _in_a_line(tool: Listing) -> dict[str, Any]:
    first = tool.description.strip().partition("\n")[0]
    return {"name": tool.name, "summary": shorten(first, 160)}


def _in_full(tool: Listing) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        **({} if tool.output_schema is None else {"outputSchema": tool.output_schema}),
        **({} if tool.annotations is None else {"annotations": tool.annotations}),
    }
