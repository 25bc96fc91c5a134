"""Map a tool's stack trace to the plugin's source."""

from collections.abc import Callable
from functools import lru_cache

from opentabs_py.core.plugins.stack_traces import (
    SourceMap,
    readable_positions,
    readable_stack,
)
from opentabs_py.plugins.plugin import SourceMapFile


def read_stack(stack: str, source_map: SourceMapFile | None) -> str:
    """Return a tool's stack trace mapped to the plugin's source, as far as possible.

    The first time that a plugin throws, this takes 10 ms, or up to 0.2 s for a large plugin.
    """
    return readable_stack(stack, None if source_map is None else _parse(source_map))


def read_positions(text: str, find_map: Callable[[str], SourceMapFile | None]) -> str:
    """Return a text with positions in adapters mapped to the plugins' sources, if known.

    The first position of a plugin takes as long as its first stack trace.

    Args:
        text: The text.
        find_map: Returns the source map of the plugin with a name.
    """

    def parsed(plugin: str) -> SourceMap | None:
        file = find_map(plugin)
        return None if file is None else _parse(file)

    return readable_positions(text, parsed)


@lru_cache(maxsize=16)
def _parse(file: SourceMapFile) -> SourceMap | None:
    content = file.read()
    try:
        return None if content is None else SourceMap(content)
    except (ValueError, RecursionError):
        return None
