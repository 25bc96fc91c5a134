"""Self-contained HTML files: no network, no other files.

A file's own security policy allows only its own script and style, and no text in its data can break
out of the data block.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "\.{1,2}/([\w./]+)\.js";\n', re.MULTILINE)
_TYPES: Final = re.compile(r"^/\*\* @import [^\n]* \*/\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
_LEFT: Final = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_ESCAPES: Final = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def bundle(entry: str, directories: Sequence[Path]) -> str:
    """Return a module and all that it imports as one script: inline modules cannot import.

    Each module becomes a function that is called once and returns what it exports.

    Args:
        entry: The name of the module's file.
        directories: Where modules are; the first that has a file with a name is used.

    Raises:
        ValueError: A module is not there, or uses another way to import or export.
    """
    done: dict[str, str] = {}

    def add(name: str) -> None:
        done[name] = ""  # its place, before those that it imports are known
        text = _find(f"{name}.js", directories).read_text(encoding="utf-8")
        imports = [(names, path.rpartition("/")[2]) for names, path in _IMPORT.findall(text)]
        for _, needed in imports:
            if needed not in done:
                add(needed)
        text = _TYPES.sub("", _IMPORT.sub("", text))
        exports = _EXPORT.findall(text)
        text = _EXPORT.sub("", text)
        if (left := _LEFT.search(text)) is not None:
            raise ValueError(f"{name}.js has a line that cannot be bundled: {left[0]}")
        heads = [f"const {{{_renamed(names)}}} = {_variable(of)};\n" for names, of in imports]
        body = "".join(heads) + text
        del done[name]  # after what it imports
        done[name] = (
            f"const {_variable(name)} = (() => {{\n{body}return {{{', '.join(exports)}}};\n}})();\n"
        )

    add(entry.removesuffix(".js"))
    return '"use strict";\n(() => {\n' + "".join(done.values()) + "})();\n"


def style(names: Sequence[str], directories: Sequence[Path]) -> str:
    """Return several style sheets as one."""
    return "".join(_find(name, directories).read_text(encoding="utf-8") for name in names)


def fill(template: str, parts: Mapping[str, str], *, script: str, style: str) -> str:
    """Return a page with its parts in the places of `{{name}}`, and its policy.

    Args:
        template: The page.
        parts: What else is in it, as HTML.
        script: Its only script.
        style: Its only style sheet.
    """
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; "
        "img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
    )
    whole = {"policy": policy, "style": style, "script": script, **parts}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: whole[match[1]], template)


def data_text(data: Any) -> str:
    """Return JSON that can stand in a script element."""
    # Only "<" could end the script element; the others are escaped in case the JSON is reused.
    return json.dumps(data, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def data_url(content: bytes, kind: str) -> str:
    """Return a file as the URL of itself.

    Args:
        content: The file.
        kind: Its media type.
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _find(name: str, directories: Sequence[Path]) -> Path:
    for directory in directories:
        if (path := directory / name).is_file():
            return path
    raise ValueError(f"There is no file {name}.")


def _variable(module: str) -> str:
    return f"${module}"


def _renamed(names: str) -> str:
    """Return imported names as destructuring writes them: `a as b` is `a: b`."""
    return ", ".join(
        each.strip().replace(" as ", ": ") for each in names.split(",") if each.strip()
    )


def _source(text: str) -> str:
    """Return the CSP source expression of an inline script or style (CSP Level 3, 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
