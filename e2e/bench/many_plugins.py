"""Many plugins of realistic sizes, the same in every run: `python -m e2e.bench.many_plugins DIR`.

Like the public plugins, each has an adapter of 580 to 780 KB, a source map of twice that size, 20
tools, and 1.5 KB of schemas per tool. The content is invented but similar: descriptions, a few
optional arguments with bounds and enums, lists of objects as results. Each adapter runs, and each
of its tools returns its arguments.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

COUNT = 120
TOOLS_EACH = 20
SMALLEST, LARGEST = 580_000, 780_000  # size of an adapter, in bytes
SEED = 16

VERBS = ("list", "get", "create", "update", "delete", "search", "archive", "move", "copy", "share")
THINGS = ("message", "channel", "document", "issue", "board", "invoice", "contact", "event")
MORE = ("folder", "comment", "label", "member", "project", "report", "ticket", "task", "file")
FIELDS = (
    *("title", "body", "status", "owner_id", "created_at", "updated_at", "priority", "due_date"),
    *("parent_id", "url", "description", "assignee", "tags", "color", "position", "is_archived"),
)
WORDS = re.findall(
    r"\w+",
    """
    the of a to in and for that is with on by as from are which this only when not all more also may
    most recent given filter returned ordered result cursor page workspace account current user
    default maximum identifier timestamp text value name optional empty visible
    """,
)
LINES = 400  # distinct lines that the code consists of


def write_plugins(directory: Path, count: int = COUNT, *, seed: int = SEED) -> list[Path]:
    """Write plugins, each for its own site, and return their directories."""
    return [write_plugin(directory, number, seed=seed) for number in range(count)]


def write_plugin(directory: Path, number: int, *, seed: int = SEED) -> Path:
    random = Random(f"{seed}/{number}")
    name = f"site-{number:03}"
    plugin = directory / name
    dist = plugin / "dist"
    dist.mkdir(parents=True)
    about = {
        "displayName": f"Site {number}",
        "description": _sentence(random, 12),
        "urlPatterns": [f"*://*.{name}.example/*"],
        "homepage": f"https://{name}.example/",
    }
    package = {"name": f"opentabs-plugin-{name}", "version": "1.0.0", "opentabs": about}
    (plugin / "package.json").write_text(json.dumps(package, indent=2))
    names = random.sample([f"{v}_{t}" for v in VERBS for t in (*THINGS, *MORE)], TOOLS_EACH)
    tools = {"sdkVersion": "0.1.0", "tools": [_tool(random, each) for each in names]}
    (dist / "tools.json").write_text(json.dumps(tools, indent=2))
    adapter = _adapter(random, name, names)
    (dist / "adapter.iife.js").write_text(adapter)
    (dist / "adapter.iife.js.map").write_text(_source_map(random, 2 * len(adapter)))
    return plugin


def _tool(random: Random, name: str) -> dict[str, Any]:
    verb, thing = name.split("_")
    arguments = random.sample(FIELDS, random.randint(2, 6))
    results = random.sample(FIELDS, random.randint(4, 8))
    one = _object(random, results)
    description = _sentence(random, random.randint(12, 40))
    many: dict[str, Any] = {
        "type": "object",
        "properties": {
            f"{thing}s": {"type": "array", "items": one},
            "next_cursor": {"type": "string", "description": _sentence(random, 8)},
        },
        "required": [f"{thing}s"],
        "additionalProperties": False,
    }
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        "name": name,
        "displayName": f"{verb} {thing}".capitalize(),
        "description": f"{verb.capitalize()} a {thing}. {description}",
        "summary": f"{verb.capitalize()} a {thing}",
        "icon": "wrench",
        "group": f"{thing}s".capitalize(),
        "input_schema": {**dialect, **_object(random, arguments, required=1)},
        "output_schema": {**dialect, **(many if verb in ("list", "search") else one)},
    }


def _object(random: Random, fields: list[str], *, required: int | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field: _field(random) for field in fields},
        "required": fields[:required],
        "additionalProperties": False,
    }


def _field(random: Random) -> dict[str, Any]:
    described = {"description": _sentence(random, random.randint(4, 14))}
    match random.randrange(6):
        case 0:
            return {"type": "integer", "minimum": 1, "maximum": 100, "default": 20, **described}
        case 1:
            return {"type": "string", "enum": random.sample(WORDS, 4), **described}
        case 2:
            return {"type": "array", "items": {"type": "string"}, "maxItems": 50, **described}
        case 3:
            return {"anyOf": [{"type": "string"}, {"type": "null"}], **described}
        case 4:
            return {"type": "boolean", **described}
        case _:
            return {"type": "string", "minLength": 1, **described}


def _adapter(random: Random, name: str, tools: list[str]) -> str:
    """Return a script of a real adapter's size that registers the tools."""
    listed = ",".join(f'{{name:"{tool}",handle:async(value)=>value}}' for tool in tools)
    head = "(()=>{\n"
    tail = (
        "const root=globalThis.__openTabs??={};root.adapters??={};\n"
        f'root.adapters["{name}"]={{tools:[{listed}],isReady:async()=>true,teardown(){{}}}};\n'
        "})();\n//# sourceMappingURL=adapter.iife.js.map\n"
    )
    size = random.randint(SMALLEST, LARGEST) - len(head) - len(tail)
    return f"{head}{_fill(random, size, list(_code_lines(random)))}{tail}"


def _code_lines(random: Random) -> Iterator[str]:
    for number in range(LINES):
        thing, field = random.choice(THINGS), random.choice(FIELDS)
        text = _sentence(random, random.randint(3, 12))
        yield (
            f"function {thing}{number}(e,t){{if(e.{field}==null)throw new TypeError({text!r});"
            f"return {{{field}:e.{field},{thing}:t?.map((n)=>n.id+{random.random()})??[]}}}}\n"
        )


def _source_map(random: Random, size: int) -> str:
    letters = "ACDEGIKMOQSUWYacegikmoqsuwy"
    segments = ["".join(random.choices(letters, k=random.randint(4, 5))) for _ in range(LINES)]
    lines = [f"{','.join(random.choices(segments, k=12))};" for _ in range(LINES)]
    content = {
        "version": 3,
        "sources": ["../src/index.ts"],
        "sourcesContent": [_fill(random, size // 2, list(_code_lines(random)))],
        "names": [],
        "mappings": _fill(random, size // 2, lines).strip(),
    }
    return json.dumps(content)


def _fill(random: Random, size: int, lines: list[str]) -> str:
    """Return lines in random order, with about that total size."""
    average = sum(map(len, lines)) / len(lines)
    text = "".join(random.choices(lines, k=int(1.1 * size / average)))
    end = text.rfind(lines[0][-1], 0, size) + 1
    return text[:end]


def _sentence(random: Random, words: int) -> str:
    return " ".join(random.choices(WORDS, k=words)).capitalize() + "."


if __name__ == "__main__":
    write_plugins(Path(sys.argv[1]))
