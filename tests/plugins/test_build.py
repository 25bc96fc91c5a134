"""Building plugins with the real builder in Node."""

import json
import os
import shutil
from pathlib import Path

import anyio
import pytest

from opentabs_py.errors import BuildError
from opentabs_py.plugins.build import Builder, Built, start_builder
from opentabs_py.plugins.freshness import is_stale
from opentabs_py.plugins.load import load_plugin
from opentabs_py.plugins.toolchain import Toolchain
from tests.plugins.sources import HEAD, INDEX, PACKAGE, TOOL, build, dist, source, tools
from tests.waiting import PATIENT


async def test_what_is_built_can_be_loaded(builder: Builder, tmp_path: Path) -> None:
    built = await build(builder, source(tmp_path))

    manifest = load_plugin(tmp_path).manifest
    assert (built.name, built.tools) == ("chat", ("send_message",))
    assert [tool.name for tool in manifest.tools] == ["send_message"]
    assert manifest.tools[0].display_name == "Send Message"


async def test_the_icon_itself_is_embedded(builder: Builder, tmp_path: Path) -> None:
    await build(builder, source(tmp_path))

    [tool] = tools(tmp_path)

    assert tool["icon"] == "wrench"
    assert tool["iconSvg"].startswith("<svg xmlns=")
    assert "currentColor" in tool["iconSvg"]


async def test_the_same_source_builds_the_same_bytes_in_any_directory(
    builder: Builder, toolchain: Toolchain, tmp_path: Path
) -> None:
    first = source(tmp_path / "here")
    second = source(tmp_path / "somewhere" / "deeper" / "else")

    await build(builder, first)
    async with start_builder(toolchain) as another:
        await build(another, second)

    assert list(dist(first)) == ["adapter.iife.js", "adapter.iife.js.map", "tools.json"]
    assert dist(first) == dist(second)


async def test_a_build_that_changes_nothing_touches_nothing(
    builder: Builder, tmp_path: Path
) -> None:
    await build(builder, source(tmp_path))
    before = [file.stat().st_mtime_ns for file in sorted((tmp_path / "dist").iterdir())]

    again = await build(builder, tmp_path)

    assert not again.changed
    assert [f.stat().st_mtime_ns for f in sorted((tmp_path / "dist").iterdir())] == before


async def test_a_build_that_changes_nothing_is_not_stale(builder: Builder, tmp_path: Path) -> None:
    await build(builder, source(tmp_path))
    for path in (tmp_path / "dist", *(tmp_path / "dist").iterdir()):
        os.utime(path, (1_000_000, 1_000_000))
    edited = is_stale(tmp_path)

    again = await build(builder, tmp_path)

    assert edited
    assert not again.changed
    assert not is_stale(tmp_path)


@pytest.mark.parametrize("name", ["lib/who.ts", "lib/names.json", "../shared.ts"])
async def test_a_build_is_stale_once_any_module_that_it_was_made_of_has_changed(
    builder: Builder, tmp_path: Path, name: str
) -> None:
    text = "[1]" if name.endswith(".json") else "export default [1];"
    index = f"import who from '../{name}';\nexport const first = who[0];\n{INDEX}"
    directory = source(tmp_path / "plugin", **{"src/index.ts": index, name: text})
    await build(builder, directory)
    assert not is_stale(directory)

    os.utime(directory / name, (4_000_000_000, 4_000_000_000))

    assert is_stale(directory)


async def test_a_change_is_built(builder: Builder, tmp_path: Path) -> None:
    await build(builder, source(tmp_path))
    before = dist(tmp_path)

    again = await build(builder, source(tmp_path, given="z.object({ body: z.string() })"))

    assert again.changed
    assert dist(tmp_path)["adapter.iife.js"] != before["adapter.iife.js"]
    assert list(tools(tmp_path)[0]["input_schema"]["properties"]) == ["body"]


async def test_an_invalid_source_leaves_what_was_built(builder: Builder, tmp_path: Path) -> None:
    await build(builder, source(tmp_path))
    before = dist(tmp_path)

    built = await builder.build(source(tmp_path, given="z.string()"))

    assert built.problems != ()
    assert dist(tmp_path) == before


async def test_the_adapter_carries_its_hash_and_the_list_of_tools_the_same(
    builder: Builder, tmp_path: Path
) -> None:
    await build(builder, source(tmp_path))
    files = dist(tmp_path)

    signature = json.loads(files["tools.json"])["adapterHash"]

    assert len(signature) == 64
    assert signature.encode() in files["adapter.iife.js"]


async def test_the_source_map_leads_to_the_source(builder: Builder, tmp_path: Path) -> None:
    await build(builder, source(tmp_path))
    files = dist(tmp_path)

    sources = json.loads(files["adapter.iife.js.map"])["sources"]

    assert b"//# sourceMappingURL=adapter.iife.js.map" in files["adapter.iife.js"]
    assert "../src/tools.ts" in sources
    assert "@opentabs-dev/plugin-sdk/register.js" in sources
    assert [each for each in sources if str(tmp_path) in each or "adapter_js" in each] == []


async def test_only_the_part_of_zod_that_is_used_is_bundled(
    builder: Builder, tmp_path: Path
) -> None:
    built = await build(builder, source(tmp_path))

    assert built.sizes["adapter.iife.js"] < 200_000


@pytest.mark.parametrize(
    ("z", "line"),
    [
        ("z", "import z from 'zod';"),
        ("zod", "import zod, { ZodError } from 'zod'; console.log(ZodError);"),
        ("z", "import { z, type ZodType } from 'zod';"),
        ("z", "import { ZodError, z, } from 'zod'; console.log(ZodError);"),
        ("zed", "import {\n  ZodError,\n  z as zed,\n} from 'zod/v4'; console.log(ZodError);"),
        ("z", "// Uses the `x` API, and it's \"new\".\n/* `\n*/\nimport { z } from 'zod';"),
        ("z", "const quoted = \"`//\";\nimport { z } from 'zod';"),
    ],
)
async def test_only_the_part_of_zod_that_is_used_is_bundled_however_it_is_imported(
    builder: Builder, tmp_path: Path, z: str, line: str
) -> None:
    tool = TOOL.format(input=f"{z}.object({{ text: {z}.string() }})", output=f"{z}.object({{}})")
    text = HEAD.replace("import { z } from 'zod';", line) + tool

    built = await build(builder, source(tmp_path, **{"src/tools.ts": text}))

    assert built.sizes["adapter.iife.js"] < 200_000


async def test_what_only_looks_like_an_import_of_zod_stays_as_it_is(
    builder: Builder, tmp_path: Path
) -> None:
    quoted = "\nimport { z } from 'zod';\n"
    index = f"import type {{ z }} from 'zod';\n{INDEX}\nconsole.log(`{quoted}` as unknown as z);"

    await build(builder, source(tmp_path, **{"src/index.ts": index}))

    assert "import { z } from 'zod';" in dist(tmp_path)["adapter.iife.js"].decode()


async def test_zods_compiled_validators_are_off_before_the_plugin_is_made(
    builder: Builder, tmp_path: Path
) -> None:
    await build(builder, source(tmp_path))
    adapter = dist(tmp_path)["adapter.iife.js"].decode()

    assert adapter.index("jitless:true") < adapter.index("send_message")


async def test_a_plugin_in_javascript_is_built(builder: Builder, tmp_path: Path) -> None:
    index = INDEX.replace("readonly ", "").replace("from './tools'", "from './tools.js'")
    directory = source(tmp_path, **{"src/index.js": index})
    (directory / "src/index.ts").unlink()
    (directory / "src/tools.ts").rename(directory / "src/tools.js")

    built = await build(builder, directory)

    assert built.tools == ("send_message",)


async def test_an_import_of_zod_over_several_lines_moves_no_other_line(
    builder: Builder, tmp_path: Path
) -> None:
    first, second = "import {\n  z,\n} from 'zod';\n", "import {\n  z\n} from 'zod/v4';\n"
    third = "import zod, {\n  z as again,\n  ZodError,\n} from 'zod';\n"
    text = f"{first}{second}{third}const = z;"
    built = await builder.build(source(tmp_path, **{"src/tools.ts": text}))
    [problem] = built.problems
    assert (problem.file, problem.line) == ("src/tools.ts", 11)


COMMON_JS = """
const { defineTool, OpenTabsPlugin } = require('@opentabs-dev/plugin-sdk');
const { z } = require('zod');
const send = defineTool({
  name: 'send_message',
  description: 'Send a message',
  input: z.object({ text: z.string().describe('What to send') }),
  output: z.object({ ok: z.boolean() }),
  handle: async () => ({ ok: true }),
});
class Chat extends OpenTabsPlugin {
  name = 'chat';
  displayName = 'Chat';
  description = 'Chats';
  urlPatterns = ['http://127.0.0.1/*'];
  tools = [send];
  async isReady() { return true; }
}
module.exports = new Chat();
"""


async def test_a_plugin_in_common_js_is_built_with_one_zod(
    builder: Builder, tmp_path: Path
) -> None:
    directory = source(tmp_path, **{"src/index.js": COMMON_JS})
    (directory / "src/index.ts").unlink()

    await build(builder, directory)

    [tool] = tools(tmp_path)
    text = tool["input_schema"]["properties"]["text"]
    assert text == {"type": "string", "description": "What to send"}
    sources = json.loads(dist(tmp_path)["adapter.iife.js.map"])["sources"]
    assert [each for each in sources if each.endswith(".cjs")] == []  # a second Zod


@pytest.mark.parametrize(
    "ending", ["export default Chat;", "const plugin = new Chat(); export { plugin as default };"]
)
async def test_the_plugin_may_be_exported_as_a_class_or_by_another_name(
    builder: Builder, tmp_path: Path, ending: str
) -> None:
    index = INDEX.replace("export default new Chat();", ending)

    built = await build(builder, source(tmp_path, **{"src/index.ts": index}))

    assert built.tools == ("send_message",)


async def test_the_plugins_own_zod_comes_before_ours(
    builder: Builder, toolchain: Toolchain, tmp_path: Path
) -> None:
    own = tmp_path / "node_modules" / "zod"
    shutil.copytree(toolchain.packages["zod"], own, ignore=shutil.ignore_patterns("src"))
    (own / "index.js").write_text(
        "import * as z from './v4/classic/external.js'; export * from './v4/classic/external.js';"
        "export { z }; export const string = () => z.string().describe('by its own Zod');"
    )

    await build(builder, source(tmp_path))

    assert tools(tmp_path)[0]["input_schema"]["properties"]["text"]["description"] == (
        "by its own Zod"
    )


async def test_what_a_plugin_imports_is_where_editors_look_for_it(
    builder: Builder, toolchain: Toolchain, tmp_path: Path
) -> None:
    stale = tmp_path / "node_modules" / "zod"
    stale.parent.mkdir()
    stale.symlink_to(tmp_path / "builder-of-another-version" / "zod")

    await build(builder, source(tmp_path))

    for name, package in toolchain.packages.items():
        assert (tmp_path / "node_modules" / name).resolve() == package.resolve()


async def test_a_package_that_is_installed_is_left_alone(builder: Builder, tmp_path: Path) -> None:
    installed = tmp_path / "node_modules" / "@opentabs-dev" / "plugin-sdk"
    installed.mkdir(parents=True)

    await build(builder, source(tmp_path))

    assert not installed.is_symlink()


async def test_a_pre_script_is_built_and_named_and_goes_when_its_source_goes(
    builder: Builder, tmp_path: Path
) -> None:
    script = "import { definePreScript } from '@opentabs-dev/plugin-sdk';\n"
    script += "definePreScript(({ set }) => set('early', true));\n"
    directory = source(tmp_path, **{"src/pre-script.ts": script})
    await build(builder, directory)
    manifest = load_plugin(directory).manifest

    (directory / "src/pre-script.ts").unlink()
    await build(builder, directory)

    assert manifest.pre_script_file == "pre-script.iife.js"
    assert load_plugin(directory).manifest.pre_script_file is None
    assert list(dist(directory)) == ["adapter.iife.js", "adapter.iife.js.map", "tools.json"]


async def test_everything_wrong_is_reported_in_one_run(builder: Builder, tmp_path: Path) -> None:
    second = TOOL.format(input="z.string()", output="z.object({})").replace("send =", "other =")
    text = HEAD + TOOL.format(input="z.object({ d: z.date() })", output="z.void()") + second
    package = {**PACKAGE, "version": ""}

    built = await builder.build(
        source(tmp_path, **{"src/tools.ts": text, "package.json": json.dumps(package)})
    )

    # A module's exports are sorted by name: `other`, then `send`.
    assert [(problem.file, problem.line, problem.path) for problem in built.problems] == [
        ("package.json", None, "version"),
        ("src/tools.ts", 10, "input"),
        ("src/tools.ts", 3, "input.d"),
        ("src/tools.ts", 3, "output"),
        ("src/tools.ts", 3, "name"),
    ]


async def test_one_tools_error_does_not_hide_what_else_is_wrong(
    builder: Builder, tmp_path: Path
) -> None:
    index = INDEX.replace(
        "readonly tools",
        "readonly configSchema = { n: { type: 'number', default: 1n } };\n  readonly tools",
    )
    broken = TOOL.format(input="z.object({ a: undefined })", output="z.object({})").replace(
        "handle:", "annotations: { since: 1n },\n  handle:"
    )
    second = TOOL.format(input="z.object({ d: z.date() })", output="z.object({})")
    text = HEAD + broken + second.replace("send", "sign", 2).replace("Send", "Sign")

    built = await builder.build(
        source(tmp_path, **{"src/index.ts": index, "src/tools.ts": text}),
    )

    bigint = "cannot be written as JSON (Do not know how to serialize a BigInt)"
    assert [str(problem).partition(";")[0] for problem in built.problems] == [
        f"src/index.ts: the plugin's configSchema {bigint}",
        f"src/tools.ts:3: send_message annotations: {bigint}",
        "src/tools.ts:3: send_message input.a: is undefined, as an import in a circle is",
        "src/tools.ts:11: sign_message input.d: uses z.date(), and JSON has no dates",
    ]


UNUSABLE = {
    "syntax": ("const = ;", "src/index.ts:1: "),
    "a missing file": ("import './nope';", "src/index.ts:1: Could not resolve"),
    "a package that is not installed": (
        "import '@acme/wire/parts';",
        'src/index.ts:1: Could not resolve "@acme/wire/parts"; install it: npm install @acme/wire',
    ),
    "a path alias": (
        "import '@/tools';",
        'src/index.ts:1: Could not resolve "@/tools"; import a file of the plugin by its relative',
    ),
    "a file of the plugin, as if it were a package": (
        "import 'src/tools.ts';",
        'src/index.ts:1: Could not resolve "src/tools.ts"; import a file of the plugin by its',
    ),
    "a URL": (
        "import 'https://esm.example/wire';",
        "src/index.ts:1: A plugin is one script, which imports nothing from a URL; install",
    ),
    "a picture": (
        "import './logo.svg';",
        'src/index.ts:1: No loader is configured for ".svg" files: src/logo.svg; import it with',
    ),
    "a module of Node": (
        "import 'node:fs';",
        'src/index.ts:1: Could not resolve "node:fs", which only Node has; a plugin runs in a page',
    ),
    "a part of the SDK that is not": (
        "import '@opentabs-dev/plugin-sdk/nope';",
        'src/index.ts:1: The SDK has no "nope"',
    ),
    "a style sheet": (
        "import './style.css';",
        "src/index.ts:1: A plugin cannot load style sheets; import its text",
    ),
    "await at the top level": (
        "await fetch('/config');\n" + INDEX,
        "src/index.ts:1: uses await at the top level of a module, but",
    ),
    "the page": ("document.title;", "src/index.ts:1: cannot be imported outside a page"),
    "a global of Node": (
        "const key = process.env.KEY ?? 'none';\n" + INDEX,
        "src/index.ts:1: uses process, which only Node has; a plugin runs in a page",
    ),
    "a buffer of Node": (
        "const key = Buffer.from('key');\n" + INDEX,
        "src/index.ts:1: uses Buffer, which only Node has; a plugin runs in a page",
    ),
    "an error in a callback": (
        "queueMicrotask(() => { throw new Error('no'); });\n" + INDEX,
        "src/index.ts: threw an error that nothing catches while it was read: no",
    ),
    "no plugin": ("export const a = 1;", "src/index.ts: has no default export of a plugin"),
    "a class that throws": (
        "export default class { constructor() { throw new Error('no'); } }",
        "src/index.ts: the plugin's class cannot be instantiated: no",
    ),
    "no tools": (
        INDEX.replace("readonly tools = Object.values(tools);", ""),
        "src/index.ts: the plugin has no list of tools",
    ),
    "no isReady": (
        INDEX.replace("async isReady() { return true; }", "override isReady = null as never;"),
        "src/index.ts: the plugin has no isReady()",
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_source_that_cannot_be_parsed_is_reported_with_its_place(
    builder: Builder, tmp_path: Path, name: str
) -> None:
    text, wanted = UNUSABLE[name]

    files = {"src/index.ts": text, "src/logo.svg": "<svg/>"}
    built = await builder.build(source(tmp_path, **files))

    assert [str(problem) for problem in built.problems if str(problem).startswith(wanted)]
    assert not (tmp_path / "dist").exists()


async def test_the_text_of_a_style_sheet_may_be_imported(builder: Builder, tmp_path: Path) -> None:
    index = f"import css from './style.css' with {{ type: 'text' }};\nconsole.log(css);\n{INDEX}"
    files = {"src/index.ts": index, "src/style.css": "b { color: red }"}

    await build(builder, source(tmp_path, **files))

    assert b"b { color: red }" in dist(tmp_path)["adapter.iife.js"]
    assert list(dist(tmp_path)) == ["adapter.iife.js", "adapter.iife.js.map", "tools.json"]


async def test_a_style_sheet_that_a_package_imports_is_left_out_with_a_warning(
    builder: Builder, tmp_path: Path
) -> None:
    files = {
        "src/index.ts": f"import 'widget';\n{INDEX}",
        "node_modules/widget/index.js": "import './style.css';",
        "node_modules/widget/style.css": "b { color: red }",
    }

    built = await build(builder, source(tmp_path, **files))

    assert [each.why.partition(";")[0] for each in built.warnings] == [
        "A plugin cannot load style sheets"
    ]
    assert list(dist(tmp_path)) == ["adapter.iife.js", "adapter.iife.js.map", "tools.json"]


async def test_a_name_that_a_package_does_not_export_is_one_problem(
    builder: Builder, tmp_path: Path
) -> None:
    imports = "import { slep } from '@opentabs-dev/plugin-sdk'; import { a } from './a.ts';"
    files = {"src/index.ts": f"{imports} slep(a);\n{INDEX}", "src/a.ts": "export const b = 1;"}

    built = await builder.build(source(tmp_path, **files))

    assert [str(problem) for problem in built.problems] == [
        'src/index.ts:1: "@opentabs-dev/plugin-sdk" does not export "slep"',
        'src/index.ts:1: "src/a.ts" does not export "a"',
    ]


async def test_what_a_plugin_prints_does_not_get_in_the_way(
    builder: Builder, tmp_path: Path
) -> None:
    index = f"console.log('hello'); console.error('there');\n{INDEX}"

    built = await build(builder, source(tmp_path, **{"src/index.ts": index}))

    assert (built.name, built.warnings) == ("chat", ())
    assert [tool["name"] for tool in tools(tmp_path)] == ["send_message"]
    assert b"hello" in dist(tmp_path)["adapter.iife.js"]


async def test_what_happens_in_a_plugin_does_not_keep_the_build(
    builder: Builder, tmp_path: Path
) -> None:
    index = f"setInterval(() => {{}}, 1000); Promise.reject(new Error('no'));\n{INDEX}"

    await build(builder, source(tmp_path, **{"src/index.ts": index}))

    assert [tool["name"] for tool in tools(tmp_path)] == ["send_message"]
    assert b"setInterval" in dist(tmp_path)["adapter.iife.js"]


async def test_a_directory_without_a_source_is_reported(builder: Builder, tmp_path: Path) -> None:
    built = await builder.build(tmp_path)

    assert [problem.why.partition(";")[0] for problem in built.problems] == [
        "is missing",
        "has no src/index.ts",
    ]


@pytest.mark.parametrize("text", ["{", "[]"])
async def test_an_unreadable_package_json_is_reported(
    builder: Builder, tmp_path: Path, text: str
) -> None:
    built = await builder.build(source(tmp_path, **{"package.json": text}))

    [problem] = built.problems
    assert problem.file == "package.json"


async def test_a_dist_that_cannot_be_written_is_an_error(builder: Builder, tmp_path: Path) -> None:
    (source(tmp_path) / "dist").write_text("a file")

    with pytest.raises(BuildError, match=r"Cannot write .*dist"):
        await builder.build(tmp_path)


async def test_a_source_that_cannot_be_looked_at_is_an_error(
    builder: Builder, tmp_path: Path
) -> None:
    directory = source(tmp_path)
    shutil.rmtree(directory / "src")
    (directory / "src").symlink_to("src")  # no permission would stop root

    with pytest.raises(BuildError, match=r"Cannot build the plugin: .*src/index\.ts'"):
        await builder.build(directory)


def toolchain_with(builder: str, toolchain: Toolchain, directory: Path) -> Toolchain:
    """Return a toolchain whose builder is another program."""
    other = Toolchain(toolchain.node, directory / "adapter_js")
    shutil.copytree(toolchain.directory / "sdk", other.directory / "sdk")
    other.builder.parent.mkdir()
    other.builder.write_text(builder)
    return other


# Answers each request with the name of its directory, but that of `slow` only with the next one.
ECHO = """
import { existsSync, writeFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { basename } from "node:path";
const held = [];
for await (const line of createInterface({ input: process.stdin })) {
  const { root } = JSON.parse(line);
  const problems = [{ file: "", line: null, why: basename(root) }];
  const description = { plugin: null, tools: [] };
  held.push(JSON.stringify({ description, files: {}, problems, warnings: [] }) + "\\n");
  prepare(root);
  if (basename(root) !== "slow") process.stdout.write(held.splice(0).join(""));
}
function prepare(root) {
  PREPARE
}
"""


def first_problem(built: Built) -> str:
    return built.problems[0].why


async def test_a_cancelled_build_leaves_no_answer_for_the_next(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    echo = ECHO.replace("PREPARE", "writeFileSync(`${root}/asked`, '')")
    slow, fast = source(tmp_path / "slow"), source(tmp_path / "fast")
    async with start_builder(toolchain_with(echo, toolchain, tmp_path)) as running:
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(running.build, slow)
                while not (slow / "asked").exists():  # noqa: ASYNC110 (a process makes it)
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()

            built = await running.build(fast)

    assert first_problem(built) == "fast"


async def test_a_builder_may_write_any_number_of_warnings(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    echo = ECHO.replace("PREPARE", "writeSync(2, 'x'.repeat(1_000_000))")
    async with start_builder(toolchain_with(echo, toolchain, tmp_path)) as running:
        with anyio.fail_after(PATIENT):
            built = await running.build(source(tmp_path / "plugin"))

    assert first_problem(built) == "plugin"


async def test_a_builder_that_crashes_says_why(toolchain: Toolchain, tmp_path: Path) -> None:
    broken = "process.stderr.write('out of order'); process.exit(1);"

    async with start_builder(toolchain_with(broken, toolchain, tmp_path)) as running:
        with pytest.raises(BuildError, match="out of order"):
            await running.build(source(tmp_path / "plugin"))


async def test_the_build_after_a_crash_has_a_new_builder(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    echo = ECHO.replace("PREPARE", "if (existsSync(`${root}/broken`)) process.exit(1);")
    plugin = source(tmp_path / "plugin", broken="")
    async with start_builder(toolchain_with(echo, toolchain, tmp_path)) as running:
        with pytest.raises(BuildError):
            await running.build(plugin)
        (plugin / "broken").unlink()

        built = await running.build(plugin)

    assert first_problem(built) == "plugin"
