/**
 * Describes a plugin by importing it. Runs in a separate worker, because a plugin is code, and may
 * print, throw, loop or exit.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { EXPORT } from "./bundle.js";
import { messageOf, toJsonSchema } from "./schemas.js";

/** @import { SourceProblem } from "./bundle.js" */

/**
 * @typedef {object} ToolDescription
 * @property {string} file where it is defined, relative to the plugin's directory; or ""
 * @property {number | null} line
 * @property {Record<string, unknown>} fields as written in the source
 * @property {object | null} input null if it has errors
 * @property {object | null} output
 * @property {{path: string, why: string}[]} problems
 * @property {string[]} members the names of all its members
 */

/**
 * @typedef {object} Description
 * @property {Record<string, unknown> | null} plugin its fields; null if there is no plugin
 * @property {ToolDescription[]} tools
 * @property {SourceProblem[]} problems
 */

/**
 * @typedef {object} Task
 * @property {string} file the bundle
 * @property {string} root
 * @property {string} entry
 */

const WITHIN = 10_000; // ms; importing a plugin takes a few dozen
const PLUGIN_FIELDS = [
  "name",
  "displayName",
  "description",
  "urlPatterns",
  "excludePatterns",
  "homepage",
  "configSchema",
];
const TOOL_FIELDS = [
  "name",
  "displayName",
  "description",
  "summary",
  "icon",
  "group",
  "annotations",
];
const MEMBERS = ["isReady"];
/** The globals of Node that are not in a page. */
const NODE = ["process", "Buffer", "global", "setImmediate", "clearImmediate"];

/**
 * Describes plugins. A worker for the next one is started in advance, because starting it takes
 * most of the time.
 */
export class Describer {
  #next = start();

  /**
   * @param {string} code the bundle made for it
   * @param {string} root
   * @param {string} entry
   * @returns {Promise<Description>}
   */
  async describe(code, root, entry) {
    const directory = await mkdtemp(join(tmpdir(), "opentabs-describe-"));
    try {
      const file = join(directory, "describe.mjs");
      await writeFile(file, code);
      return await ask(this.#next, { file, root, entry });
    } finally {
      this.#next = start();
      await rm(directory, { recursive: true, force: true });
    }
  }
}

function start() {
  // Discard the plugin's output, because a program parses ours.
  const worker = new Worker(fileURLToPath(import.meta.url), { stdout: true, stderr: true });
  worker.unref();
  return worker;
}

/**
 * @param {Worker} worker
 * @param {Task} task
 * @returns {Promise<Description>}
 */
function ask(worker, task) {
  return new Promise((resolve) => {
    /** @param {string} why */
    const fail = (why) => resolve(unusable(task.entry, why));
    const timer = setTimeout(() => {
      fail(
        `was still being imported after ${WITHIN / 1000} s; only define the plugin at the top level ` +
          "of a module, and do everything else in onActivate() or in a tool",
      );
      worker.terminate();
    }, WITHIN);
    worker.once("message", (description) => {
      resolve(description);
      worker.terminate(); // one of the plugin's timers could keep it running
    });
    worker.once("error", (error) => fail(`could not be read: ${messageOf(error)}`));
    worker.once("exit", () => {
      clearTimeout(timer);
      fail("exited the process while it was imported, which a plugin must not do");
    });
    worker.postMessage(task);
  });
}

if (!isMainThread && parentPort !== null) {
  const port = parentPort;
  process.setSourceMapsEnabled(true);
  process.on("unhandledRejection", () => {}); // from work that a probed callback started
  port.once("message", async (task) => {
    // Answers at once: if the error ended the worker, the description could still come before it.
    process.on("uncaughtException", (error) => {
      const why = `threw an error that nothing catches while it was read: ${messageOf(error)}`;
      port.postMessage(unusable(task.entry, why));
    });
    // Otherwise a plugin that uses them would be built, and end with an error in every page.
    for (const name of NODE) {
      Reflect.deleteProperty(globalThis, name);
    }
    port.postMessage(await read(task));
  });
  await import("zod"); // nearly every plugin imports it
}

/**
 * @param {string} file
 * @param {string} why
 * @returns {Description}
 */
function unusable(file, why) {
  return { plugin: null, tools: [], problems: [{ file, line: null, why }] };
}

/**
 * @param {Task} task
 * @returns {Promise<Description>}
 */
async function read({ file, root, entry }) {
  /** @type {any} */
  let bundle;
  try {
    bundle = await import(pathToFileURL(file).href);
  } catch (error) {
    const at = locate(/** @type {any} */ (error)?.stack, root);
    const missing = /^(\w+) is not defined$/.exec(messageOf(error))?.[1] ?? "";
    const why = NODE.includes(missing)
      ? `uses ${missing}, which only Node has; a plugin runs in a page`
      : `cannot be imported outside a page: ${messageOf(error)}; the build imports it to read its ` +
        "schemas, so use what only a page has in onActivate(), isReady() or a tool";
    return { plugin: null, tools: [], problems: [{ ...at, file: at.file || entry, why }] };
  }
  const { plugin, problem } = instance(bundle.module.default);
  if (plugin === null) {
    return unusable(entry, problem);
  }
  const problems = MEMBERS.filter((name) => typeof plugin[name] !== "function").map((name) => ({
    file: entry,
    line: null,
    why: `the plugin has no ${name}(); write one, as in async ${name}() { return true; }`,
  }));
  const about = fields(plugin, PLUGIN_FIELDS);
  for (const { path, why } of about.problems) {
    problems.push({ file: entry, line: null, why: `the plugin's ${path} ${why}` });
  }
  let tools = [];
  if (Array.isArray(plugin.tools)) {
    tools = plugin.tools.map((/** @type {any} */ tool) => describeTool(tool, bundle, root));
  } else {
    const why = "the plugin has no list of tools; write tools = [firstTool, secondTool]";
    problems.push({ file: entry, line: null, why });
  }
  return { plugin: about.fields, tools, problems };
}

/**
 * @param {any} exported the module's default export: a plugin, or its class
 * @returns {{plugin: any, problem: string}}
 */
function instance(exported) {
  if (typeof exported === "function") {
    try {
      return { plugin: new exported(), problem: "" };
    } catch (error) {
      return {
        plugin: null,
        problem: `the plugin's class cannot be instantiated: ${messageOf(error)}`,
      };
    }
  }
  if (typeof exported !== "object" || exported === null) {
    return { plugin: null, problem: `has no default export of a plugin; ${EXPORT}` };
  }
  return { plugin: exported, problem: "" };
}

/**
 * @param {any} tool
 * @param {any} bundle
 * @param {string} root
 * @returns {ToolDescription}
 */
function describeTool(tool, { calls, zod }, root) {
  const at = locate(calls.get(tool), root);
  if (typeof tool !== "object" || tool === null) {
    const why = "is not a tool; use the return value of defineTool()";
    const problems = [{ path: "", why }];
    return { ...at, fields: {}, input: null, output: null, problems, members: [] };
  }
  const input = toJsonSchema(zod, tool.input, "input");
  const output = toJsonSchema(zod, tool.output, "output");
  const about = fields(tool, TOOL_FIELDS);
  const problems = [...about.problems, ...input.problems, ...output.problems];
  if (typeof tool.handle !== "function") {
    const why = "is not a function; write async handle(params, context) { … }";
    problems.push({ path: "handle", why });
  }
  return {
    ...at,
    fields: about.fields,
    input: input.json,
    output: output.json,
    problems,
    members: Object.keys(tool),
  };
}

/**
 * Reads these members of an object, as JSON; a member that JSON has nothing for is left out.
 * @param {any} object
 * @param {string[]} names
 */
function fields(object, names) {
  const found = /** @type {Record<string, unknown>} */ ({});
  const problems = [];
  for (const name of names) {
    try {
      const text = JSON.stringify(object[name]);
      if (text !== undefined) {
        found[name] = JSON.parse(text);
      }
    } catch (error) {
      const why = `cannot be written as JSON (${messageOf(error)}); write what JSON can express`;
      problems.push({ path: name, why });
    }
  }
  return { fields: found, problems };
}

/**
 * Finds the place in the plugin's own sources that a stack leads to.
 * @param {string | undefined} stack
 * @param {string} root
 */
function locate(stack, root) {
  for (const [, place, line] of (stack ?? "").matchAll(
    /\(?((?:file:\/\/)?\/[^()\n]*?):(\d+):\d+\)?$/gm,
  )) {
    const path = place?.startsWith("file://") ? fileURLToPath(place) : `${place}`;
    const inside = relative(root, path);
    if (!inside.startsWith("..") && !inside.includes("node_modules")) {
      return { file: inside, line: Number(line) };
    }
  }
  return { file: "", line: null };
}
