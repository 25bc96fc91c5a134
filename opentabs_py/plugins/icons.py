"""Lucide's icons, as Iconify packs them in one file."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any


class LucideIcons:
    """The icons of a file, read when first needed.

    Args:
        file: Iconify's `icons.json` (https://iconify.design/docs/types/iconify-json.html).
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def names(self) -> Sequence[str]:
        """Return all names, including old names of the same icon."""
        return [*self._set["icons"], *self._set["aliases"]]

    def svg(self, name: str) -> str | None:
        """Return an icon as an SVG document that takes the colour of the surrounding text."""
        icon = self._set["icons"].get(name)
        if icon is None:
            alias = self._set["aliases"].get(name)
            # Lucide has no aliases that rotate or flip their parent.
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
