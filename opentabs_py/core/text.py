"""How paths and values are written in messages."""

from collections.abc import Iterable


def path_text(path: Iterable[int | str]) -> str:
    """Write a path as JavaScript does: `tools[3].input_schema`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def shorten(text: str, limit: int = 120) -> str:
    """Cut a text that would drown the message it stands in."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
