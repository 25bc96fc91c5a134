"""Generate what follows from other files.

From `opentabs_py/core/protocol.py` and `wire.py`: `extension/protocol.js` (types and checks) and
the tables of `docs/protocol.md`. From the public docstrings: `docs/api.md`. From the SDK's JSDoc:
`adapter_js/sdk/types/`.

Usage: python .ci/generate.py [--check]

With --check nothing is written; the exit code is 1 when a file is stale.
"""

import inspect
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, get_args

from api_page import api_page
from pydantic import TypeAdapter

from opentabs_py.core import protocol, wire

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"
NOISE = ("title", "description", "default", "discriminator")
# What `check` in the JavaScript below interprets.
INTERPRETED = {
    *("$ref", "additionalProperties", "anyOf", "const", "items", "maxLength", "maximum"),
    *("minLength", "minimum", "oneOf", "pattern", "properties", "required", "type"),
}


def clean(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove everything that validates nothing; a field with a default is simply not required."""
    cleaned: dict[str, Any] = {}
    for key, value in schema.items():
        match value:
            case dict() if key in ("properties", "$defs"):
                cleaned[key] = {name: clean(each) for name, each in value.items()}
            case _ if key in NOISE:
                continue
            case dict():
                cleaned[key] = clean(value)
            case list():
                cleaned[key] = [clean(v) if isinstance(v, dict) else v for v in value]
            case _:
                cleaned[key] = value
    return cleaned


def schemas(adapters: dict[str, TypeAdapter[Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of each adapter, and the definitions they share."""
    roots: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for name, adapter in adapters.items():
        schema = clean(adapter.json_schema(mode="validation"))
        definitions |= schema.pop("$defs", {})
        roots[name] = schema
    return roots, dict(sorted(definitions.items()))


def keywords(schema: dict[str, Any]) -> set[str]:
    """Return the keywords that a schema uses, however deep."""
    inner: list[Any] = list(schema.get("properties", {}).values())
    inner += [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    inner += [
        each
        for key in ("items", "additionalProperties")
        if isinstance(each := schema.get(key), dict)
    ]
    return set(schema).union(*map(keywords, inner))


def js_type(schema: dict[str, Any]) -> str:
    """Return the TypeScript type of a schema, for JSDoc."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(js_type(each) for each in schema[key])
    match schema.get("type"):
        case "array":
            item = js_type(schema["items"])
            return f"({item})[]" if " " in item else f"{item}[]"
        case "object" if "properties" in schema:
            required = schema.get("required", [])
            fields = (
                f"{name}{'' if name in required or 'const' in value else '?'}: {js_type(value)}"
                for name, value in schema["properties"].items()
            )
            return "{" + ", ".join(fields) + "}"
        case "object":
            values = schema.get("additionalProperties")
            return f"Record<string, {js_type(values) if isinstance(values, dict) else 'any'}>"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null":
            return str(schema["type"])
        case None:
            return "any"
        case other:
            raise ValueError(f"no TypeScript for {other}")


JS = """\
/**
 * The protocol between server and extension: its types, and validation of messages.
 *
 * Generated from opentabs_py/core/protocol.py by `make generate`. Do not edit.
 */

{typedefs}

export const PROTOCOL_VERSION = {version};
export const SUBPROTOCOL = {subprotocol};
export const SECRET_SUBPROTOCOL = {secret_subprotocol}; // and the secret
export const CLOSE_REPLACED = {close_replaced}; // by a newer connection from the same browser

/** @type {{Record<string, any>}} */
const definitions = {definitions};

/** @type {{Record<string, any>}} */
const roots = {roots};

/**
 * @param {{{kinds}}} kind
 * @param {{unknown}} message
 * @returns {{string | null}} the path of the first problem, "" for the whole; null if it is valid
 */
export function check(kind, message) {{
  return problem(roots[kind], message, "");
}}

/**
 * @param {{any}} schema
 * @param {{any}} value
 * @param {{string}} path
 * @returns {{string | null}}
 */
function problem(schema, value, path) {{
  if (schema.$ref !== undefined) {{
    return problem(definitions[schema.$ref.slice(8)], value, path);
  }}
  if (schema.oneOf !== undefined) {{
    return problemOfMessage(schema.oneOf, value, path);
  }}
  if (schema.anyOf !== undefined) {{
    const problems = schema.anyOf.map((/** @type {{any}} */ each) => problem(each, value, path));
    return problems.includes(null) ? null : problems[0];
  }}
  if (schema.const !== undefined) {{
    return value === schema.const ? null : path;
  }}
  switch (schema.type) {{
    case "string":
      return isString(schema, value) ? null : path;
    case "integer":
      return Number.isInteger(value) && inRange(schema, value) ? null : path;
    case "number":
      return Number.isFinite(value) && inRange(schema, value) ? null : path;
    case "boolean":
      return typeof value === "boolean" ? null : path;
    case "null":
      return value === null ? null : path;
    case "array":
      return problemOfArray(schema, value, path);
    case "object":
      return problemOfObject(schema, value, path);
    default:
      return null;
  }}
}}

/**
 * @param {{any[]}} models told apart by their `method`
 * @param {{any}} value
 * @param {{string}} path
 */
function problemOfMessage(models, value, path) {{
  if (typeof value !== "object" || value === null) {{
    return path;
  }}
  const model = models
    .map((each) => definitions[each.$ref.slice(8)])
    .find((each) => each.properties.method.const === value.method);
  return model === undefined ? join(path, "method") : problem(model, value, path);
}}

/**
 * @param {{any}} schema
 * @param {{any}} value
 * @param {{string}} path
 */
function problemOfArray(schema, value, path) {{
  if (!Array.isArray(value)) {{
    return path;
  }}
  for (const [index, item] of value.entries()) {{
    const found = problem(schema.items, item, `${{path}}[${{index}}]`);
    if (found !== null) {{
      return found;
    }}
  }}
  return null;
}}

/**
 * @param {{any}} schema
 * @param {{any}} value
 * @param {{string}} path
 */
function problemOfObject(schema, value, path) {{
  if (typeof value !== "object" || value === null || Array.isArray(value)) {{
    return path;
  }}
  const properties = schema.properties ?? {{}};
  /** @type {{string[]}} */
  const required = schema.required ?? [];
  const missing = required.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) {{
    return join(path, missing);
  }}
  for (const [name, item] of Object.entries(value)) {{
    const known = Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
    if (known === false) {{
      return join(path, name);
    }}
    const found = typeof known === "object" ? problem(known, item, join(path, name)) : null;
    if (found !== null) {{
      return found;
    }}
  }}
  return null;
}}

/**
 * Lengths are in code points, as Python counts them.
 * @param {{any}} schema
 * @param {{unknown}} value
 */
function isString(schema, value) {{
  if (typeof value !== "string") {{
    return false;
  }}
  const {{ minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern }} = schema;
  if (value.length < minLength || (value.length > maxLength && [...value].length > maxLength)) {{
    return false;
  }}
  return pattern === undefined || new RegExp(pattern, "u").test(value);
}}

/**
 * @param {{any}} schema
 * @param {{number}} value
 */
function inRange(schema, value) {{
  const {{ minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY }} = schema;
  return value >= minimum && value <= maximum;
}}

/**
 * @param {{string}} path
 * @param {{string}} name
 */
function join(path, name) {{
  return path === "" ? name : `${{path}}.${{name}}`;
}}
"""


def protocol_js() -> str:
    """Return the text of `extension/protocol.js`."""
    roots, definitions = schemas(wire.CHECKED)
    unknown = set().union(*map(keywords, [*roots.values(), *definitions.values()])) - INTERPRETED
    if unknown:
        raise ValueError(f"check() in JavaScript does not interpret {', '.join(sorted(unknown))}")
    sync = {"SyncResult": TypeAdapter(protocol.SyncResult)}  # the result in an answer
    sent, sent_definitions = schemas({**wire.SENT, **sync})
    types = {**sent_definitions, **definitions, **sent, **roots}
    typedefs = "\n".join(f"/** @typedef {{{js_type(s)}}} {name} */" for name, s in types.items())
    return JS.format(
        typedefs=typedefs,
        version=protocol.PROTOCOL_VERSION,
        subprotocol=json.dumps(protocol.SUBPROTOCOL),
        secret_subprotocol=json.dumps(protocol.SECRET_SUBPROTOCOL),
        close_replaced=protocol.CLOSE_REPLACED,
        definitions=json.dumps(definitions, indent=2),
        roots=json.dumps(roots, indent=2),
        kinds=" | ".join(json.dumps(name) for name in roots),
    )


def protocol_tables() -> str:
    """Return the tables of `docs/protocol.md`."""
    lines = []
    sides = (
        ("Server to extension", protocol.ToExtension),
        ("Extension to server", protocol.FromExtension),
    )
    for title, union in sides:
        lines += [f"### {title}", "", "| method | kind | says | params |", "|---|---|---|---|"]
        for model in get_args(union):
            fields = model.model_fields
            method = fields["method"].default
            params = fields["params"].annotation
            kind = "request" if "id" in fields else "notification"
            lines.append(f"| `{method}` | {kind} | {inspect.getdoc(model)} | `{params.__name__}` |")
        lines.append("")
    lines += ["### Params, results and their parts", ""]
    _, definitions = schemas({**wire.CHECKED, **wire.SENT})
    models = {
        name: model
        for name, model in vars(protocol).items()
        if inspect.isclass(model)
        and issubclass(model, protocol.Model)
        and not issubclass(model, protocol.Message)
        and model is not protocol.Model
    }
    for name, model in sorted(models.items()):
        schema = definitions.get(name) or clean(model.model_json_schema())
        lines += [f"**`{name}`** — {inspect.getdoc(model)}", ""]
        required = schema.get("required", [])
        lines += ["| field | type | |", "|---|---|---|"]
        for field, value in schema["properties"].items():
            kind = js_type(value).replace("|", "\\|")
            optional = "" if field in required else "optional"
            lines.append(f"| `{field}` | `{kind}` | {optional} |")
        lines.append("")
    return "\n".join(lines)


def sdk_types() -> dict[Path, str]:
    """Return the declarations of the SDK, as TypeScript makes them of its JSDoc."""
    tsc = ROOT / "adapter_js" / "node_modules" / ".bin" / "tsc"
    sdk = ROOT / "adapter_js" / "sdk"
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([tsc, "--project", sdk, "--outDir", directory], check=True)
        written = sorted(Path(directory).rglob("*.d.ts"))
        return {sdk / "types" / file.relative_to(directory): file.read_text() for file in written}


def outputs() -> dict[Path, str | None]:
    """Return each generated file and what it must hold; None for one that must go."""
    docs = ROOT / "docs" / "protocol.md"
    before, _, rest = docs.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    types = ROOT / "adapter_js" / "sdk" / "types"
    return {
        **dict.fromkeys(types.rglob("*.d.ts")),
        ROOT / "docs" / "api.md": api_page(),
        **sdk_types(),
        ROOT / "extension" / "protocol.js": protocol_js(),
        docs: f"{before}{BEGIN}\n\n{protocol_tables()}\n{END}{after}",
    }


def main() -> int:
    """Write the files, or say which are stale."""
    check = "--check" in sys.argv[1:]
    wanted = outputs()
    stale = [
        path
        for path, text in wanted.items()
        if (path.read_text() if path.exists() else None) != text
    ]
    for path in stale:
        text = wanted[path]
        if check:
            print(f"{path.relative_to(ROOT)} is stale: run `make generate`", file=sys.stderr)
        elif text is None:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
