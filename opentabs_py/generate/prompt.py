"""The prompt for a language model that improves the names in a generated plugin."""

import json
from typing import Final

from opentabs_py.core.plugin_names import mcp_name
from opentabs_py.core.text import shorten, well_formed
from opentabs_py.generate.calls import calls_of
from opentabs_py.generate.site import KnownSite

_LONGEST: Final = 600  # characters of a result
_TASK: Final = """\
These are the tools of a plugin for {url}. AI agents choose among them by name and description.
They were named after the requests that they send. For each tool, suggest

- a name: lower-case words joined by "_", a verb first;
- a description: one sentence that says what it does and when to use it, not how;
- for each argument, a description with its format and an example.

Answer with one JSON object whose members are the present names, each
{{"name": …, "description": …, "arguments": {{…}}}}. Leave out what is good as it is.
"""


def prompt_for(site: KnownSite, name: str) -> str:
    """Return a prompt that asks for better names and descriptions.

    Args:
        site: What is known of the site.
        name: The plugin's name.
    """
    parts = [_TASK.format(url=site.recording.url)]
    for tool in site.tools:
        lines = [
            f"## {mcp_name(name, tool.name)}",
            f"request: {tool.source}",
            f"description: {tool.description}",
        ]
        for given in tool.inputs.arguments:
            kinds = " or ".join(sorted(given.shape.kinds)) or "anything"
            need = "required" if given.is_required else "optional"
            where = f", from {given.source.path}" if given.source is not None else ""
            lines.append(f"argument {given.name}: {kinds}, {need}{where}")
        for call in calls_of(tool)[:1]:
            lines.append(f"called with: {json.dumps(call.arguments, ensure_ascii=False)}")
            result = shorten(json.dumps(call.value, ensure_ascii=False), _LONGEST)
            lines.append(f"returned: {result}")
        parts.append("\n".join(lines))
    return well_formed("\n".join(parts))
