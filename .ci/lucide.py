"""Write the outlines of Lucide's icons for the console: `python .ci/lucide.py [--check]`.

They come from the package `@iconify-json/lucide`, with which plugins are built, so the console has
an icon for every name that a build accepts. Each icon becomes the `d` of one path.
"""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ICONS = ROOT / "adapter_js/node_modules/@iconify-json/lucide/icons.json"
WRITTEN = ROOT / "opentabs_py/console/page/lucide.json"


def outline(body: str) -> str:
    """Return an icon as one path."""
    return "".join(filter(None, map(path, ET.fromstring(f"<g>{body}</g>").iter())))


def path(shape: ET.Element) -> str:
    """Return a shape as a path."""
    at = shape.attrib

    def number(name: str, default: float = 0) -> float:
        return float(at.get(name, default))

    match shape.tag:
        case "path":
            # A path's first `m` is relative to the origin, unless another path goes before.
            return f"M0 0{at['d']}" if at["d"][0] == "m" else at["d"]
        case "circle" | "ellipse":
            x, y = number("cx"), number("cy")
            rx, ry = number("rx", number("r")), number("ry", number("r"))
            half = f"a{rx:g} {ry:g} 0 1 0"
            return f"M{x - rx:g} {y:g}{half} {2 * rx:g} 0{half} {-2 * rx:g} 0z"
        case "rect":
            x, y, w, height = number("x"), number("y"), number("width"), number("height")
            r = min(number("rx", number("ry")), w / 2, height / 2)
            corner = f"a{r:g} {r:g} 0 0 1"
            return (
                f"M{x + r:g} {y:g}h{w - 2 * r:g}{corner} {r:g} {r:g}v{height - 2 * r:g}"
                f"{corner} {-r:g} {r:g}h{2 * r - w:g}{corner} {-r:g} {-r:g}v{2 * r - height:g}"
                f"{corner} {r:g} {-r:g}z"
            )
        case "line":
            return f"M{at['x1']} {at['y1']}L{at['x2']} {at['y2']}"
        case "polyline" | "polygon":
            return f"M{at['points']}{'z' if shape.tag == 'polygon' else ''}"
        case "g":
            return ""
        case _:
            raise ValueError(f"a shape of a kind not known: {shape.tag}")


def main() -> int:
    icons: dict[str, Any] = json.loads(ICONS.read_bytes())
    outlines = {name: outline(icon["body"]) for name, icon in icons["icons"].items()}
    for name, alias in icons.get("aliases", {}).items():
        outlines[name] = outlines[alias["parent"]]
    text = json.dumps(dict(sorted(outlines.items())), indent=0, separators=(",", ":")) + "\n"
    if "--check" in sys.argv:
        return int(WRITTEN.read_text() != text)
    WRITTEN.write_text(text)
    return 0


sys.exit(main())
