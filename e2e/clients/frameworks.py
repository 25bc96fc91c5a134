"""How agent frameworks read a tool's result, by the shapes that they know."""

from typing import Any


def autogen_reads(result: dict[str, Any]) -> tuple[bool, list[str]]:
    """Return what AutoGen's `McpWorkbench` makes of a result: whether it failed, and its parts.

    AutoGen replaces a result with an error when one of its blocks is of another type than these,
    and so do the functions of semantic-kernel.
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
