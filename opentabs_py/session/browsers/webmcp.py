"""Settings of the browser and its extension for serving pages' own tools (WebMCP)."""

from collections.abc import Sequence
from typing import Final

from opentabs_py.config.settings import Settings
from opentabs_py.core.plugin_names import PAGE
from opentabs_py.core.protocol import PluginSpec

FEATURE: Final = "WebMCP"
_SCRIPT: Final = "content/page_tools.js"
_POLYFILL: Final = "content/model_context.js"


def browser_features(settings: Settings) -> Sequence[str]:
    """Return the features of Chromium that are turned on in a browser that is launched."""
    return (FEATURE,) if settings.webmcp and not settings.webmcp_polyfill else ()


def page_spec(settings: Settings, own_pages: Sequence[str]) -> PluginSpec | None:
    """Return what stands for pages' own tools in the list of plugins; None if they are not served.

    Args:
        settings: Name the pages.
        own_pages: Match patterns of our own pages.
    """
    if not settings.webmcp:
        return None
    early = [_POLYFILL, _SCRIPT] if settings.webmcp_polyfill else [_SCRIPT]
    return PluginSpec(
        name=PAGE,
        version="1",
        matches=[*settings.webmcp],
        exclude_matches=[*own_pages],
        file=_SCRIPT,
        config={},
        early=early,
    )
