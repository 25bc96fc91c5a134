"""A built plugin works in pages whose scripts add enumerable members to built-in prototypes."""

from collections.abc import AsyncGenerator

import pytest

from opentabs_py.config.paths import data_dir
from opentabs_py.config.settings import load_settings
from opentabs_py.plugins.build import start_builder
from opentabs_py.plugins.toolchain import find_toolchain
from opentabs_py.session.session import OpenTabs
from tests.plugins.sources import HEAD, build, source

# The kinds of schema in whose code Zod enumerates members.
TOOLS = f"""{HEAD}
import * as sdk from '@opentabs-dev/plugin-sdk';
export const send = defineTool({{
  name: 'send',
  description: 'Return the arguments that Zod parsed',
  input: z.strictObject({{
    to: z.discriminatedUnion('kind', [
      z.object({{ kind: z.literal('user'), id: z.int() }}),
      z.looseObject({{ kind: z.literal('group') }}),
    ]),
    tags: z.record(z.enum(['a', 'b']), z.string()),
    both: z.object({{ x: z.number() }}).and(z.object({{ y: z.number() }})),
    text: z.string().trim().default('hi'),
  }}),
  output: z.unknown(),
  handle: async (given) => ({{ given, sdk: typeof Object.fromEntries(Object.entries(sdk)).log }}),
}});
"""
ARGUMENTS = {
    "to": {"kind": "group", "extra": 1},
    "tags": {"a": "1", "b": "2"},
    "both": {"x": 1, "y": 2},
}
PATCHES = {
    "functions": "Object.prototype.extend = Array.prototype.remove = function () {};",
    "values": "Object.prototype.version = 1; Array.prototype.owner = { name: 'x' };",
    "getters": """
      for (const { prototype } of [Object, Array]) {
        const get = () => 5;
        Object.defineProperty(prototype, "size_", { get, enumerable: true, configurable: true });
      }""",
}


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[OpenTabs]:
    directory = source(tmp_path_factory.mktemp("chat"), **{"src/tools.ts": TOOLS})
    async with start_builder(find_toolchain(data_dir=data_dir())) as builder:
        await build(builder, directory)
    async with OpenTabs(plugins=[directory], settings=load_settings(port=0)) as tabs:
        yield tabs


@pytest.mark.parametrize("patch", PATCHES)
async def test_a_built_plugin_runs_in_a_page_that_extends_prototypes(
    running: OpenTabs, patch: str
) -> None:
    url = f"http://127.0.0.1/{patch}"
    body = f"<!doctype html><script>{PATCHES[patch]}</script><title>x</title>"
    await running.context.route(
        url, lambda route: route.fulfill(body=body, content_type="text/html")
    )
    page = await running.open(url)

    value = await running.call("chat_send", ARGUMENTS)

    await page.close()
    assert value == {"given": {**ARGUMENTS, "text": "hi"}, "sdk": "object"}
