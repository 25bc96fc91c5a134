"""How paths and values are written in messages."""

from collections.abc import Iterable


def path_text(path: Iterable[int | str]) -> str:
    """Write a path as JavaScript does: `tools[3].input_schema`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def shorten(text: str, limit: int = 120) -> str:
    """Cut a text that would drown the message it stands in."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(text: str) -> str:
    """Make a page's text fit for a terminal: no control character of theirs reaches it."""
    return "".join(c if c.isprintable() else " " for c in text)


def duration(seconds: float) -> str:
    """Write a time as people read it: `0.38 ms`, `12 ms`, `1.52 s`, `4 min 05 s`."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.2f} ms" if seconds < 0.00995 else f"{seconds * 1000:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.995:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"
