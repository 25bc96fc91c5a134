import assert from "node:assert/strict";
import { test } from "node:test";
import { Describer } from "../builder/describe.js";

const PLUGIN = "export const module = { default: { name: 'chat', tools: [], isReady() {} } };";
const AT_ONCE = 10; // busy, one worker in thirty sent its description before the error
const ROUNDS = 5;

test("an error that nothing catches is always reported, however fast the plugin is read", async () => {
  const describers = Array.from({ length: AT_ONCE }, () => new Describer());

  for (let round = 0; round < ROUNDS; round++) {
    const descriptions = await Promise.all(
      describers.map((describer) =>
        describer.describe(
          `queueMicrotask(() => { throw new Error("no"); }); ${PLUGIN}`,
          "/",
          "src/index.ts",
        ),
      ),
    );

    for (const { plugin, problems } of descriptions) {
      assert.equal(plugin, null);
      assert.deepEqual(problems, [
        {
          file: "src/index.ts",
          line: null,
          why: "threw an error that nothing catches while it was read: no",
        },
      ]);
    }
  }
});

test("all members of a tool are named", async () => {
  const tool = "{ name: 'send', readonlyHint: true, input: null, output: null, handle() {} }";
  const code = `export const calls = new Map(); export const zod = undefined;
    export const module = { default: { tools: [${tool}, 7], isReady() {} } };`;

  const { tools } = await new Describer().describe(code, "/", "src/index.ts");

  assert.deepEqual(
    tools.map(({ members }) => members),
    [["name", "readonlyHint", "input", "output", "handle"], []],
  );
});

test("a plugin that exits the process while it is imported is reported", async () => {
  const code = `import { exit } from "node:process"; exit(0); ${PLUGIN}`;

  const { plugin, problems } = await new Describer().describe(code, "/", "src/index.ts");

  assert.equal(plugin, null);
  assert.match(problems[0]?.why ?? "", /^exited the process/);
});
