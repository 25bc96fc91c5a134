/**
 * Which plugins there are, and putting their adapters into documents, once each.
 */
import * as documents from "./documents.js";
import { serves } from "./match.js";
import * as tabs from "./tabs.js";

/** @import { PluginFault, PluginSpec, SyncResult } from "../protocol.js" */
/** @import { Doc } from "./documents.js" */

const STORED = "plugins";
const RELAY = ["content/channel.js", "content/outbox.js", "content/logs.js", "content/relay.js"];

/** @type {PluginSpec[]} */
let specs = [];
/** @type {PluginFault[]} */
let faults = [];
/** @type {Promise<void>} */
let restored = Promise.resolve();

/** A worker that was just woken knows no plugins until the server syncs; storage does. */
export function restore() {
  restored = chrome.storage.session.get(STORED).then((stored) => {
    if (specs.length === 0 && Array.isArray(stored[STORED])) {
      specs = stored[STORED];
    }
  });
}

/** Resolves once the plugins are known. */
export function ready() {
  return restored;
}

/**
 * @param {string} url
 * @returns {string[]} the names of the plugins that serve it
 */
export function serving(url) {
  return specs.filter((spec) => serves(spec, url)).map((spec) => spec.name);
}

/**
 * @param {PluginSpec[]} plugins all there are; what is not named goes
 * @returns {Promise<SyncResult>}
 */
export async function sync(plugins) {
  await restored;
  const same = JSON.stringify(plugins) === JSON.stringify(specs);
  specs = plugins;
  faults = [];
  if (!same || (await chrome.scripting.getRegisteredContentScripts()).length === 0) {
    await chrome.storage.session.set({ [STORED]: specs });
    await register();
  }
  await injectLate();
  const counts = await Promise.all(Array.from(documents.all(), inject));
  return { injected: counts.reduce((sum, count) => sum + count, 0), faults };
}

/**
 * Relay and runtime enter every later document of the plugins, once, before its own scripts.
 * Chrome may refuse a plugin's patterns: that is its fault alone, and the others work.
 */
async function register() {
  if ((await registerFor(specs)) === null) {
    return;
  }
  const sound = [];
  for (const spec of specs) {
    const refusal = await registerFor([spec]);
    if (refusal === null) {
      sound.push(spec);
    } else {
      const message = `Chrome refuses its URL patterns: ${refusal}`.slice(0, 1000);
      faults.push({ plugin: spec.name, tabId: 0, message });
    }
  }
  await registerFor(sound);
}

/**
 * @param {PluginSpec[]} plugins
 * @returns {Promise<string | null>} why Chrome refuses, or null
 */
async function registerFor(plugins) {
  const matches = [...new Set(plugins.flatMap((plugin) => plugin.matches))];
  const common = /** @type {const} */ ({ runAt: "document_start", persistAcrossSessions: false });
  await chrome.scripting.unregisterContentScripts();
  if (matches.length === 0) {
    return null;
  }
  try {
    await chrome.scripting.registerContentScripts([
      { ...common, matches, id: "runtime", js: ["content/runtime.js"], world: "MAIN" },
      { ...common, matches, id: "relay", js: RELAY, world: "ISOLATED" },
    ]);
    return null;
  } catch (error) {
    return String(error);
  }
}

/** Documents that were open before the extension get both late, and say so. */
async function injectLate() {
  const open = await chrome.tabs.query({});
  const attached = new Set(Array.from(documents.all(), (doc) => doc.tabId));
  await Promise.all(
    open.map(async ({ id, url }) => {
      if (id === undefined || attached.has(id) || url === undefined) {
        return;
      }
      if (!specs.some((spec) => serves(spec, url))) {
        return;
      }
      const target = { tabId: id };
      try {
        // The runtime first: once the relay is there, adapters follow.
        await chrome.scripting.executeScript({
          target,
          files: ["content/runtime.js"],
          world: "MAIN",
          injectImmediately: true,
        });
        await chrome.scripting.executeScript({
          target,
          files: ["content/late.js", ...RELAY],
          injectImmediately: true,
        });
      } catch (error) {
        for (const spec of specs.filter((each) => serves(each, url))) {
          faults.push({ plugin: spec.name, tabId: id, message: String(error).slice(0, 1000) });
        }
      }
    }),
  );
}

/**
 * Puts the adapters that belong into a complete document and are not there yet.
 * @param {Doc} doc
 * @returns {Promise<number>} how many went in
 */
export async function inject(doc) {
  await restored;
  if (!doc.complete) {
    for (const spec of specs.filter((each) => serves(each, doc.url))) {
      if (!doc.plugins.has(spec.name)) {
        doc.plugins.set(spec.name, {
          file: "",
          readiness: "pending",
          reason: "the page is loading",
        });
        tabs.changed();
      }
    }
    return 0;
  }
  let count = 0;
  for (const spec of specs) {
    if (serves(spec, doc.url) && doc.plugins.get(spec.name)?.file !== spec.file) {
      count += (await injectOne(doc, spec)) ? 1 : 0;
    }
  }
  for (const name of doc.plugins.keys()) {
    if (!specs.some((spec) => spec.name === name && serves(spec, doc.url))) {
      doc.plugins.delete(name);
      tabs.changed();
    }
  }
  return count;
}

/**
 * @param {Doc} doc
 * @param {PluginSpec} spec
 */
async function injectOne(doc, spec) {
  doc.plugins.set(spec.name, { file: spec.file, readiness: "pending" });
  const target = { tabId: doc.tabId, documentIds: [doc.chromeId] };
  try {
    if (Object.keys(spec.config).length > 0) {
      await chrome.scripting.executeScript({
        target,
        world: "MAIN",
        injectImmediately: true,
        func: setConfig,
        args: [spec.config],
      });
    }
    await chrome.scripting.executeScript({
      target,
      world: "MAIN",
      injectImmediately: true,
      files: [spec.file],
    });
    documents.post(doc, { type: "adopt", plugin: spec.name, file: spec.file });
    tabs.changed();
    return true;
  } catch (error) {
    const message = `its adapter could not be injected: ${error}`.slice(0, 1000);
    faults.push({ plugin: spec.name, tabId: doc.tabId, message });
    doc.plugins.set(spec.name, { file: spec.file, readiness: "unavailable", reason: message });
    tabs.changed();
    return false;
  }
}

/**
 * Runs in the page, before the adapter: where plugins look for their settings.
 * @param {Record<string, unknown>} config
 */
function setConfig(config) {
  const page = /** @type {any} */ (globalThis);
  page.__openTabs ??= {};
  page.__openTabs.pluginConfig = { ...page.__openTabs.pluginConfig, ...config };
}
