"""Plugins that are hard to show."""

import json
from pathlib import Path
from typing import Any

from e2e.on_disk import write_plugin

NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "What it is about."},
        "priority": {"enum": ["low", "high"], "default": "high"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 9},
        "urgent": {"type": "boolean"},
        "people": {"type": "array", "items": {"$ref": "#/$defs/person"}},
        "place": {
            "anyOf": [
                {"type": "string", "title": "A name"},
                {
                    "type": "object",
                    "title": "A point",
                    "properties": {"x": {"type": "number"}},
                    "required": ["x"],
                },
            ]
        },
        "more": {},
    },
    "required": ["title", "people"],
    "additionalProperties": False,
    "$defs": {
        "person": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/person"}},
            "required": ["name"],
        }
    },
}

NUMBER: dict[str, Any] = {"type": "number"}
HOSTILE = "<img src=x onerror=\"document.title='owned'\">\u202edetrevni"
LONG = "W" * 10_000
EVIL_ICON = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="parent.document.title='owned'">
<script>parent.document.title='owned'</script><rect width="9" height="9" fill="red"/></svg>"""


def write_forms(directory: Path) -> Path:
    """Write a plugin whose tool has a nested schema, in groups, with a setting and a playground."""
    plugin = write_plugin(
        directory / "forms", tools=["where", "version"], settings={"days": NUMBER}
    )
    listed = json.loads((plugin / "dist" / "tools.json").read_text())
    where, version = listed["tools"]
    where |= {
        "displayName": "File a report",
        "summary": "Files it",
        "group": "Reports",
        "icon": "file-text",
        "input_schema": NESTED,
    }
    version |= {"group": "About", "annotations": {"readOnlyHint": True}}
    (plugin / "dist" / "tools.json").write_text(json.dumps(listed))
    (plugin / "playground").mkdir()
    (plugin / "playground" / "index.html").write_text("<!doctype html><title>forms</title>")
    return plugin


def write_evil(directory: Path) -> Path:
    """Write a plugin whose texts and icon try to break the console."""
    plugin = write_plugin(directory / "evil", tools=["version"])
    package = json.loads((plugin / "package.json").read_text())
    package["opentabs"] |= {
        "displayName": HOSTILE,
        "description": LONG,
        "iconSvg": EVIL_ICON,
        "homepage": f"https://{'w' * 60}.example/",
    }
    (plugin / "package.json").write_text(json.dumps(package))
    listed = json.loads((plugin / "dist" / "tools.json").read_text())
    listed["tools"][0] |= {"displayName": HOSTILE, "description": LONG, "summary": LONG}
    listed["tools"][0] |= {"group": HOSTILE, "icon": "__proto__"}
    (plugin / "dist" / "tools.json").write_text(json.dumps(listed))
    return plugin


def write_broken(directory: Path) -> Path:
    """Write a plugin that was not built."""
    plugin = write_plugin(directory / "broken")
    (plugin / "dist" / "tools.json").unlink()
    return plugin


def write_lacking(directory: Path, *settings: str) -> Path:
    """Write (or rewrite) a plugin that requires settings that are not set."""
    needed = {each: {**NUMBER, "required": True} for each in settings}
    return write_plugin(directory / "lacking", settings=needed)
