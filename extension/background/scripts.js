/**
 * The scripts that Chrome injects into every later document of the plugins, before the page's own:
 * realm, runtime and relay, once each and in this order, and the plugins' pre-scripts. What the
 * runtime takes up comes before it (`early`).
 */

/** @import { PluginSpec } from "../protocol.js" */
/** @typedef {chrome.scripting.RegisteredContentScript} Script */

export const RELAY = [
  "content/channel.js",
  "content/chunks.js",
  "content/outbox.js",
  "content/logs.js",
  "content/pace.js",
  "content/tool_list.js",
  "content/relay.js",
];
export const RUNTIME = ["content/runtime.js"];
const REALM = ["content/realm.js"];

/**
 * Registers the scripts of these plugins and no others. If Chrome rejects a plugin's patterns, only
 * that plugin is affected.
 * @param {PluginSpec[]} specs
 * @returns {Promise<{plugin: string, message: string}[]>} the rejected plugins
 */
export async function register(specs) {
  try {
    await reconcile(specs);
    return [];
  } catch {
    const refused = [];
    const sound = [];
    for (const spec of specs) {
      const why = await whyRefused(spec);
      if (why === null) {
        sound.push(spec);
      } else {
        refused.push({ plugin: spec.name, message: `Chrome refuses its URL patterns: ${why}` });
      }
    }
    await reconcile(sound);
    return refused;
  }
}

/**
 * Updates the registered scripts. Unchanged scripts stay registered throughout, because a document
 * that starts loading at that moment would miss them.
 * @param {PluginSpec[]} specs
 */
async function reconcile(specs) {
  const wanted = scriptsOf(specs);
  const present = await chrome.scripting.getRegisteredContentScripts();
  const isPresent = (/** @type {Script} */ script) => present.some(({ id }) => id === script.id);
  const fresh = wanted.filter((script) => !isPresent(script));
  const kept = wanted.filter(isPresent);
  const stale = present.filter(({ id }) => !wanted.some((script) => script.id === id));
  // First, because it never fails: otherwise the probe of a worker that died would stay with a
  // plugin whose patterns Chrome rejects, and the next probe would find its id taken.
  if (stale.length > 0) {
    await chrome.scripting.unregisterContentScripts({ ids: stale.map(({ id }) => id) });
  }
  if (fresh.length > 0) {
    await chrome.scripting.registerContentScripts(fresh);
  }
  if (kept.length > 0) {
    await chrome.scripting.updateContentScripts(kept);
  }
}

/**
 * @param {PluginSpec[]} specs
 * @returns {Script[]}
 */
function scriptsOf(specs) {
  const matches = [...new Set(specs.flatMap((spec) => spec.matches))];
  if (matches.length === 0) {
    return [];
  }
  const preScripts = specs.flatMap((spec) =>
    typeof spec.preScript === "string"
      ? [inFrames(script(`4 pre-script of ${spec.name}`, spec, [spec.preScript], "MAIN"))]
      : [],
  );
  const early = specs.flatMap((spec) =>
    !isEarly(spec) ? [] : [script(`1 realm, then ${spec.name}`, spec, spec.early ?? [], "MAIN")],
  );
  const excludeMatches = [...new Set(specs.flatMap((spec) => spec.excludeMatches))].filter(
    (pattern) => specs.every((spec) => spec.excludeMatches.includes(pattern)),
  );
  const anyPlugin = { matches, excludeMatches };
  // Chrome runs scripts in the order of their ids.
  return [
    script("1 realm", anyPlugin, REALM, "ISOLATED"),
    ...early,
    script("2 runtime", anyPlugin, RUNTIME, "MAIN"),
    script("3 relay", anyPlugin, RELAY, "ISOLATED"),
    ...preScripts,
  ];
}

/**
 * Whether a plugin is only what the runtime takes up.
 * @param {PluginSpec} spec
 */
export function isEarly({ early }) {
  return early !== undefined && early !== null && early.length > 0;
}

/**
 * @param {string} id
 * @param {{matches: string[], excludeMatches?: string[]}} where
 * @param {string[]} js
 * @param {"MAIN" | "ISOLATED"} world
 * @returns {Script}
 */
function script(id, { matches, excludeMatches = [] }, js, world) {
  const when = /** @type {const} */ ({ runAt: "document_start", persistAcrossSessions: false });
  return { ...when, id, matches, excludeMatches, js, world };
}

/**
 * Makes a script run in frames too, as the ecosystem's pre-scripts do. Frames without their own URL
 * count as their parent's origin; Chrome allows that only for patterns of whole origins.
 * @param {Script} script
 * @returns {Script}
 */
function inFrames(script) {
  const matchOriginAsFallback = script.matches?.every((pattern) =>
    /^[^/]*\/\/[^/]*\/\*$/.test(pattern),
  );
  return { ...script, allFrames: true, matchOriginAsFallback };
}

/**
 * @param {PluginSpec} spec
 * @returns {Promise<string | null>} null if Chrome accepts its patterns
 */
async function whyRefused(spec) {
  try {
    // A second runtime in a document finds no relay, and does nothing.
    await chrome.scripting.registerContentScripts([script("5 probe", spec, RUNTIME, "MAIN")]);
    await chrome.scripting.unregisterContentScripts({ ids: ["5 probe"] });
    return null;
  } catch (error) {
    return String(error).slice(0, 1000);
  }
}
