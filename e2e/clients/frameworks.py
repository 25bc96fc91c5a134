"""How agent frameworks read a tool's result, according to the types that they know."""

from typing import Any


def autogen_reads(result: dict[str, Any]) -> tuple[bool, list[str]]:
    """Return a result as AutoGen's `McpWorkbench` reads it: whether it failed, and its parts.

    AutoGen replaces a result with an error if one of its blocks has any other type; so do the
    functions of semantic-kernel.
    """
    parts: list[str] = []
    for block in result["content"]:
        match block["type"]:
            case "text":
                parts.append(block["text"])
            case "image" | "resource":
                parts.append(block["type"])
            case other:
                return True, [f"Unknown content type from server: {other}"]
    return result["isError"], parts
