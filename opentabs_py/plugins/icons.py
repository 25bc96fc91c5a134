"""Lucide's icons, as Iconify packs them in one file."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any


class LucideIcons:
    """The icons of a file, read when the first is asked for.

    Args:
        file: Iconify's `icons.json` (https://iconify.design/docs/types/iconify-json.html).
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def names(self) -> Sequence[str]:
        """Give all names, older ones for the same icon included."""
        return [*self._set["icons"], *self._set["aliases"]]

    def svg(self, name: str) -> str | None:
        """Give an icon as an SVG document, drawn in the colour of the text around it."""
        icon = self._set["icons"].get(name)
        if icon is None:
            alias = self._set["aliases"].get(name)
            # An alias that turns or flips its parent is none of Lucide's.
            icon = None if alias is None else self._set["icons"].get(alias["parent"])
        if icon is None:
            return None
        size = self._set.get("width", 24)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
            f'viewBox="0 0 {size} {size}">{icon["body"]}</svg>'
        )

    @cached_property
    def _set(self) -> dict[str, Any]:
        icons: dict[str, Any] = json.loads(self._file.read_bytes())
        icons.setdefault("aliases", {})
        return icons
