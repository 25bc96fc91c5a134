"""Token costs of a tool for each model that reads the list, and advice to reduce them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from opentabs_py.core.schemas.checker import JsonObject
from opentabs_py.core.tokens import estimate_tokens

LONG_DESCRIPTION: Final = 400  # tokens, of a tool
LONG_ARGUMENT: Final = 150  # tokens, of the description of one argument
MANY_CHOICES: Final = 60  # members of an enum
DEEP: Final = 5  # objects within objects
LONG_OUTPUT: Final = 1_000  # tokens; agents call tools without reading these
LONG_LIST: Final = 20_000  # tokens, a tenth of the context of most models

_WITHIN: Final = ("anyOf", "oneOf", "allOf", "prefixItems")


@dataclass(frozen=True, slots=True)
class ToolTokens:
    """What a tool costs, in tokens, as it is listed.

    Attributes:
        description: Its name, title, description and hints.
        input: The schema of its arguments.
        output: The schema of its result.
        advice: How to make it cheaper.
    """

    description: int
    input: int
    output: int
    advice: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The whole tool."""
        return self.description + self.input + self.output

    def to_json(self) -> dict[str, JsonValue]:
        """Return the numbers."""
        return {
            "description": self.description,
            "input": self.input,
            "output": self.output,
            "total": self.total,
        }


def count_tool(tool: JsonObject) -> ToolTokens:
    """Return the cost of a tool.

    Args:
        tool: A member of the answer to `tools/list`.
    """
    rest = dict(tool)
    given, returned = rest.pop("inputSchema", None), rest.pop("outputSchema", None)
    output = _count(returned)
    advice = [
        *_of_description(tool.get("description")),
        *(f"argument {each}" for each in _of_schema(given)),
        *(f"result {each}" for each in _of_schema(returned)),
    ]
    if output > LONG_OUTPUT:
        advice.append(
            f"its output schema costs {output:,} tokens: describe less of the result, or serve "
            "with --no-output-schemas"
        )
    return ToolTokens(_count(rest), _count(given), output, tuple(advice))


def advise_on_list(tools: Sequence[ToolTokens]) -> str | None:
    """Return how to make a list of tools cheaper; None if it is cheap enough."""
    total = sum(tool.total for tool in tools)
    if total <= LONG_LIST:
        return None
    return (
        f"the list costs {total:,} tokens: serve with --expose ready or --gateway, or without some "
        "of the plugins"
    )


def _count(part: JsonValue) -> int:
    if part is None:
        return 0
    return estimate_tokens(json.dumps(part, ensure_ascii=False, separators=(",", ":")))


def _of_description(description: JsonValue) -> Iterator[str]:
    tokens = _count(description)
    if tokens > LONG_DESCRIPTION:
        yield (
            f"its description costs {tokens:,} tokens: say in 100 what it does and when to use it, "
            "and the rest where it applies, in the descriptions of its arguments"
        )


def _of_schema(schema: JsonValue) -> Iterator[str]:
    """Yield advice on a schema, each beginning with the path of what it is about."""
    deepest = ""
    left: list[tuple[str, int, JsonValue]] = [("", 0, schema)]
    while left:
        path, depth, part = left.pop()
        if not isinstance(part, dict):
            continue
        if depth > DEEP and not deepest:
            deepest = path
            yield f"{path} is more than {DEEP} objects deep: flatten it"
        yield from _of_value(path, part)
        properties = part.get("properties")
        if isinstance(properties, dict):
            members = [(f"{path}.{name}", depth + 1, each) for name, each in properties.items()]
            left += [(place.removeprefix("."), level, each) for place, level, each in members]
        left.append((f"{path}[]", depth, part.get("items")))
        for keyword in _WITHIN:
            options = part.get(keyword)
            left += [(path, depth, each) for each in options] if isinstance(options, list) else []


def _of_value(path: str, part: JsonObject) -> Iterator[str]:
    if not path:
        return
    choices = part.get("enum")
    if isinstance(choices, list) and len(choices) > MANY_CHOICES:
        yield (
            f"{path} has {len(choices):,} choices: accept any string, name a few in its "
            "description, and let the error of a wrong one suggest others"
        )
    tokens = _count(part.get("description"))
    if tokens > LONG_ARGUMENT:
        yield f"{path} has a description of {tokens:,} tokens: shorten it"
