// Runtimes in a page's own world, with a hand-written relay at the other end.

import {
  channelEnd,
  FocusEvent,
  makeNode,
  makePage,
  NAME,
  settled,
  source,
  until,
} from "./fakes.js";

export const RUNTIME = source("adapter_js/runtime.js");

const ENDS = new Set(["tool.result", "tool.error"]);

export const NONCE = "f".repeat(NAME);

/**
 * A page with the runtime in it.
 * @param {{before?: string, hasRealm?: boolean}} [options] code that the page ran before, and
 *     whether the relay could create a realm
 */
export async function startRuntime({ before = "", hasRealm = true } = {}) {
  const node = makeNode();
  const page = makePage(hasRealm ? node : undefined);
  const relay = channelEnd(node, { hears: "up", says: "down" });
  /** @type {string[]} */
  const seen = [];
  page.context.note = (/** @type {unknown} */ thing) => {
    seen.push(inspect(thing));
  };
  page.run(before);
  page.run(RUNTIME);
  const offer = () => page.document.dispatchEvent(makeOffer(node));
  if (!hasRealm) offer();
  relay.say("nonce", NONCE);
  await settled(); // the page's own scripts run later, too
  return { page, relay, seen, offer };
}

/** @param {EventTarget} node */
export function makeOffer(node) {
  return new FocusEvent("opentabs:offer", { relatedTarget: node });
}

/**
 * The same, with a plugin whose tools are given as the source of an object of handlers.
 * @param {string} tools
 * @param {Parameters<typeof startRuntime>[0]} [options]
 */
export async function startPlugin(tools, options) {
  const { page, relay, seen, offer } = await startRuntime(options);
  // Created with Node's builtins, because the page may have patched its own.
  const handlers = Object.entries(page.run(`(${tools})`));
  page.context.__openTabs.adapters.demo = {
    isReady: async () => true,
    tools: handlers.map(([name, handle]) => ({ name, handle })),
  };
  relay.say("adopt", "demo");
  await until(() => relay.ofKind("readiness").length === 1, "the plugin's readiness");

  let calls = 0;
  /**
   * @param {string} tool
   * @param {object} [input]
   */
  function start(tool, input = {}, trace = false) {
    const callId = (calls++).toString(16).padStart(NAME, "0");
    const params = {
      documentId: "d".repeat(NAME),
      callId,
      plugin: "demo",
      tool,
      input,
      trace,
    };
    relay.say("tool.dispatch", JSON.stringify({ jsonrpc: "2.0", method: "tool.dispatch", params }));
    return callId;
  }
  /** @param {string} callId */
  function answers(callId) {
    return relay.heard
      .filter(({ kind, text }) => ENDS.has(kind) && text.startsWith(callId))
      .map(({ kind, text }) => ({ kind, body: JSON.parse(text.slice(NAME)) }));
  }
  /** @param {string} callId */
  function reports(callId) {
    return relay
      .ofKind("tool.progress")
      .filter((text) => text.startsWith(callId))
      .flatMap((text) => JSON.parse(`[${text.slice(NAME)}]`));
  }
  /**
   * @param {string} tool
   * @param {object} [input]
   */
  async function call(tool, input) {
    const callId = start(tool, input);
    await until(() => answers(callId).length > 0, `an answer of ${tool}`);
    return { callId, .../** @type {{kind: string, body: any}} */ (answers(callId)[0]) };
  }
  return { page, relay, seen, offer, start, answers, reports, call };
}

/**
 * All text in a value, by own properties only.
 * @param {any} thing
 * @param {number} [depth]
 * @returns {string}
 */
function inspect(thing, depth = 0) {
  if (typeof thing === "string") return thing;
  if (typeof thing !== "object" || thing === null || depth > 4) return "";
  const parts = [];
  for (const key of Object.getOwnPropertyNames(thing)) {
    const descriptor = Object.getOwnPropertyDescriptor(thing, key);
    parts.push(key, inspect(descriptor?.value, depth + 1));
  }
  return parts.join(" ");
}
