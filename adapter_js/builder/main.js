/**
 * Builds plugins for the Python program that started it. Each line on stdin is a request, and each
 * line on stdout a response, both in JSON; it exits at the end of input.
 *
 * A request: `{"root": DIR, "entry": "src/index.ts", "preScript": FILE | null, "plugin": ID}`.
 * A response: `{"description": …, "files": {NAME: TEXT}, "problems": […], "warnings": […]}`; see
 * `bundle.js` and `describe.js`. A request like the previous one rebuilds only what has changed.
 */
import { createInterface } from "node:readline";
import { Bundler } from "./bundle.js";
import { Describer } from "./describe.js";

/** @type {Bundler | null} */
let bundler = null;
const describer = new Describer();
let last = "";

for await (const line of createInterface({ input: process.stdin })) {
  if (line !== last) {
    await bundler?.dispose();
    bundler = new Bundler(JSON.parse(line));
    last = line;
  }
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
}
await bundler?.dispose();

/** @param {import("./bundle.js").Sources} sources */
async function answer({ root, entry }) {
  const {
    problems,
    warnings,
    files,
    describe: code,
  } = await /** @type {Bundler} */ (bundler).build();
  const description =
    problems.length === 0
      ? await describer.describe(code, root, entry)
      : { plugin: null, tools: [], problems: [] };
  return {
    description: { plugin: description.plugin, tools: description.tools },
    files,
    problems: [...problems, ...description.problems],
    warnings,
  };
}
