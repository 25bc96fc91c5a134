"""`opentabs inspect`: show what a built plugin contains."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from opentabs_py.cli.options import Json, PluginDir

if TYPE_CHECKING:
    from pydantic import JsonValue

    from opentabs_py.core.schemas.checker import JsonObject
    from opentabs_py.plugins.inspect import Inspection


def inspect(directory: PluginDir = Path(), json_: Json = False) -> None:
    """Show a built plugin: its pages, tools, schemas and sizes, and any warnings."""
    from opentabs_py.cli.terminal import write_json
    from opentabs_py.plugins.inspect import inspect_plugin

    inspection = inspect_plugin(directory)
    if json_:
        write_json(_as_json(inspection))
    else:
        _show(inspection)


def _as_json(inspection: "Inspection") -> dict[str, object]:
    manifest = inspection.manifest
    return {
        "name": manifest.name,
        "version": manifest.version,
        "displayName": manifest.display_name,
        "description": manifest.description,
        "urlPatterns": manifest.url_patterns,
        "excludePatterns": manifest.exclude_patterns,
        "homepage": manifest.homepage,
        "configSchema": manifest.config_schema,
        "preScript": manifest.pre_script_file,
        "sdkVersion": manifest.sdk_version,
        "sizes": inspection.sizes,
        "tools": [
            {
                "name": each.name,
                "displayName": each.tool.display_name,
                "description": each.tool.description,
                "icon": each.tool.icon,
                "group": each.tool.group,
                "inputSchema": each.tool.input_schema,
                "outputSchema": each.tool.output_schema,
                "schemaBytes": each.schema_bytes,
                "tokens": each.tokens.to_json(),
            }
            for each in inspection.tools
        ],
        "tokens": inspection.tokens,
        "warnings": inspection.warnings,
    }


def _show(inspection: "Inspection") -> None:
    from rich.table import Table

    from opentabs_py.cli.terminal import out
    from opentabs_py.core.text import one_line

    manifest = inspection.manifest
    out.print(
        f"[bold]{escape(one_line(manifest.display_name))}[/] "
        f"[dim]{manifest.name} {escape(one_line(manifest.version))}[/]\n"
        f"{escape(one_line(manifest.description))}\n"
    )
    about = Table.grid(padding=(0, 2))
    about.add_row(
        "[dim]pages[/]", escape(", ".join(manifest.url_patterns) or "set by its settings")
    )
    if manifest.exclude_patterns:
        about.add_row("[dim]except[/]", escape(", ".join(manifest.exclude_patterns)))
    if manifest.homepage is not None:
        about.add_row("[dim]homepage[/]", escape(manifest.homepage))
    if manifest.sdk_version is not None:
        about.add_row("[dim]SDK[/]", escape(manifest.sdk_version))
    if manifest.pre_script_file is not None:
        about.add_row("[dim]pre-script[/]", "runs before the page's own scripts")
    for key, setting in manifest.config_schema.items():
        kind = str(setting.get("type"))
        needed = ", required" if setting.get("required") else ""
        about.add_row("[dim]setting[/]", escape(f"{key} ({kind}{needed})"))
    for file, size in inspection.sizes.items():
        about.add_row("[dim]file[/]", escape(f"dist/{file}  {_size(size)}"))
    out.print(about)

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(1, 2, 0, 0))
    for column in ("tool", "input", "output"):
        table.add_column(column, overflow="fold")
    for column in ("schemas", "tokens"):
        table.add_column(column, justify="right", no_wrap=True)
    for each in inspection.tools:
        what = one_line(each.tool.summary or each.tool.description)
        table.add_row(
            f"[cyan]{each.name}[/]\n[dim]{escape(what)}[/]",
            escape(_members(each.tool.input_schema)),
            escape(_members(each.tool.output_schema or {})),
            _size(each.schema_bytes),
            f"{each.tokens.total:,}",
        )
    out.print(table)
    out.print(
        f"\nThese tools cost an agent about {inspection.tokens:,} tokens. This is an estimate: "
        "models differ."
    )
    for warning in inspection.warnings:
        out.print(f"[yellow]![/] {escape(warning)}", soft_wrap=True)


def _members(schema: "JsonObject") -> str:
    """Return a schema's members, one per line: `name: type`, with `?` if optional."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return _kind(schema, schema.get("$defs"))
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    lines = [
        f"{name}{'' if name in needed else '?'}: {_kind(each, schema.get('$defs'))}"
        for name, each in properties.items()
    ]
    return "\n".join(lines) or "nothing"


def _kind(schema: "JsonValue", definitions: "JsonValue") -> str:
    if not isinstance(schema, dict):
        return "anything"
    choices = schema.get("enum")
    if isinstance(choices, list):
        return " | ".join(json.dumps(each) for each in choices)
    if "const" in schema:
        return json.dumps(schema["const"])
    for union in ("anyOf", "oneOf"):
        options = schema.get(union)
        if isinstance(options, list):
            return " | ".join(dict.fromkeys(_kind(each, definitions) for each in options))
    reference = schema.get("$ref")
    if isinstance(reference, str) and isinstance(definitions, dict):
        return _kind(definitions.get(reference.removeprefix("#/$defs/")), None)  # it may be endless
    kinds = schema.get("type", "anything")
    names = [str(each) for each in kinds] if isinstance(kinds, list) else [str(kinds)]
    if "array" in names:
        items = _kind(schema.get("items", {}), definitions)
        names[names.index("array")] = f"({items})[]" if " | " in items else f"{items}[]"
    return " | ".join(names)


def _size(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1000:.1f} kB"
