"""Sources of plugins for the builder, and what it makes of them."""

import json
from pathlib import Path
from typing import Any

from opentabs_py.plugins.build import Builder, Built

PACKAGE = {
    "name": "opentabs-plugin-chat",
    "version": "1.0.0",
    "opentabs": {
        "displayName": "Chat",
        "description": "Chats",
        "urlPatterns": ["http://127.0.0.1/*"],
    },
}
INDEX = """
import { OpenTabsPlugin } from '@opentabs-dev/plugin-sdk';
import * as tools from './tools';
class Chat extends OpenTabsPlugin {
  readonly name = 'chat';
  readonly displayName = 'Chat';
  readonly description = 'Chats';
  readonly urlPatterns = ['http://127.0.0.1/*'];
  readonly tools = Object.values(tools);
  async isReady() { return true; }
}
export default new Chat();
"""
HEAD = """import { defineTool, ToolError } from '@opentabs-dev/plugin-sdk';
import { z } from 'zod';
"""
TOOL = """export const send = defineTool({{
  name: 'send_message',
  description: 'Send a message',
  input: {input},
  output: {output},
  handle: async () => {{ throw ToolError.internal('no'); }},
}});
"""


def source(
    directory: Path,
    *,
    given: str = "z.object({ text: z.string() })",
    output: str = "z.object({ ok: z.boolean() })",
    **files: str,
) -> Path:
    written = {
        "package.json": json.dumps(PACKAGE),
        "src/index.ts": INDEX,
        "src/tools.ts": HEAD + TOOL.format(input=given, output=output),
        **files,
    }
    for name, text in written.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


async def build(builder: Builder, directory: Path) -> Built:
    built = await builder.build(directory)
    assert built.problems == ()
    return built


def dist(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((directory / "dist").iterdir())}


def tools(directory: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(dist(directory)["tools.json"])["tools"]
    return listed
