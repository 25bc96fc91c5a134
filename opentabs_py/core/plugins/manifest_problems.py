"""Problems in a plugin's files, and how to fix them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic_core import ErrorDetails

from opentabs_py.core.plugins.file_names import PRE_SCRIPT
from opentabs_py.core.plugins.manifest import HINTS
from opentabs_py.core.text import path_text, rule_text, show_value

WHAT_TO_WRITE: Final[Mapping[str, str]] = {
    "": "build the plugin again",
    "name": 'write the package name, such as "opentabs-plugin-chat"',
    "version": 'write the plugin version, such as "1.0.0"',
    "opentabs": "write an object with displayName, description and urlPatterns",
    "opentabs.displayName": 'write the name that users see, such as "Chat"',
    "opentabs.description": "write a sentence that says what the plugin is for",
    "opentabs.urlPatterns": 'write the pages it is for, such as ["*://*.example.com/*"]',
    "opentabs.urlPatterns[]": 'write a match pattern, such as "*://*.example.com/*"',
    "opentabs.excludePatterns": (
        'write a list, such as ["*://status.example.com/*"], or leave it out'
    ),
    "opentabs.excludePatterns[]": 'write a match pattern, such as "*://status.example.com/*"',
    "opentabs.homepage": "write the URL of a page, or leave it out",
    "opentabs.configSchema": 'write an object, such as {"site": {"type": "url"}}, or leave it out',
    "tools": "write the list of the plugin's tools",
    "tools[]": "write an object with name, displayName, description and input_schema",
    "tools[].name": 'write lower-case words joined by "_", such as "send_message"',
    "tools[].displayName": 'write the name that users see, such as "Send message"',
    "tools[].description": "write what the tool does, for the agent that chooses it",
    "tools[].input_schema": 'write a JSON Schema such as {"type": "object", "properties": {}}',
    "tools[].output_schema": "write a JSON Schema, or leave it out",
    "tools[].annotations.title": "write a name for users, or leave it out",
    "tools[].annotations": 'write an object such as {"readOnlyHint": true}, or leave it out',
    **{f"tools[].annotations.{hint}": "write true or false, or leave it out" for hint in HINTS},
    "sdkVersion": 'build the plugin again, or write the SDK version, such as "0.1.0"',
    "preScriptFile": f'write the name of a file in dist, such as "{PRE_SCRIPT}"',
}
_EXPECTED: Final[Mapping[str, str]] = {
    "string_type": "a string",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a member of a file.

    Attributes:
        path: The keys and indexes that lead to the member.
        why: What is wrong, and what to write instead.
    """

    path: tuple[int | str, ...]
    why: str

    def text(self, *, root: int = 0) -> str:
        """Return the path and the reason, without the path's first `root` steps.

        Those steps are not in the file itself.
        """
        path = path_text(self.path[root:])
        return f"{path}: {self.why}" if path else self.why


def problem_of(details: ErrorDetails) -> Problem:
    """Return what pydantic found, for the author of the file."""
    path = details["loc"]
    kind = details["type"]
    if kind == "value_error":
        return Problem(path, rule_text(details["msg"]))
    if kind == "missing":
        why = "is missing"
    elif kind == "string_too_short":
        why = "is empty"
    elif kind == "string_too_long":
        bound = details.get("ctx", {})["max_length"]
        why = f"has {len(details['input']):,} characters, but at most {bound} are allowed"
    else:
        expected = _EXPECTED.get(kind, "what belongs here")
        why = f"is {show_value(details['input'])}, not {expected}"
    what = WHAT_TO_WRITE.get(re.sub(r"\d+", "", path_text(path)), "correct it or leave it out")
    return Problem(path, f"{why}; {what}")
