"""The content of a plugin's build for review: its scripts, its tools and its sites."""

import difflib
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from opentabs_py.core.plugins.file_names import ADAPTER
from opentabs_py.plugins.plugin import Plugin

PRE_SCRIPT: Final = "pre-script.js"
DECLARED: Final = "declared.json"
_ENDS: Final = re.compile(r"\r\n|[\n\r\u2028\u2029]")  # ECMA-262, "Line Terminators"
LONGEST_LINE: Final = 400  # characters; minified code has lines of megabytes


def content_digest(plugin: Plugin) -> str:
    """Return what identifies a plugin's build; its version and its own description do not."""
    digest = hashlib.sha256(plugin.adapter.digest.encode())
    digest.update((plugin.pre_script.digest if plugin.pre_script else "none").encode())
    digest.update(_declared(plugin))
    return digest.hexdigest()


def content_files(plugin: Plugin) -> Mapping[str, bytes]:
    """Return the same content as files, by name.

    Raises:
        PluginError: A script has changed since the plugin was loaded, or cannot be read.
    """
    files = {ADAPTER: plugin.adapter.read(), DECLARED: _declared(plugin)}
    if plugin.pre_script is not None:
        files[PRE_SCRIPT] = plugin.pre_script.read()
    return files


def find_changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Sequence[str]:
    """Return how the files of two builds differ, as the lines of a unified diff; long ones are cut.

    Args:
        before: The files of the earlier build, as `content_files` returned them.
        after: Those of the later one.
    """
    lines: list[str] = []
    for name in sorted({*before, *after}):
        old, new = (source_lines(each.get(name, b"")) for each in (before, after))
        names = f"approved {name}", f"now {name}"
        lines += difflib.unified_diff(old, new, *names, lineterm="", n=2)
    return [_cut(each) for each in lines]


def _cut(line: str) -> str:
    left = len(line) - LONGEST_LINE
    return line if left <= 0 else f"{line[:LONGEST_LINE]}… ({left:,} more characters)"


def source_lines(content: bytes) -> list[str]:
    """Return the lines of a script, as JavaScript has them.

    Python knows more ends of lines: code after one could look as if it were not in a comment.
    """
    *lines, last = _ENDS.split(content.decode("utf-8", "replace"))
    return [*lines, last] if last else lines


def _declared(plugin: Plugin) -> bytes:
    manifest = plugin.parsed
    declared = {
        "urlPatterns": manifest.url_patterns,
        "excludePatterns": manifest.exclude_patterns,
        "configSchema": manifest.config_schema,
        "tools": [asdict(tool) for tool in manifest.tools],
    }
    return json.dumps(declared, indent=2, sort_keys=True, ensure_ascii=False).encode()
