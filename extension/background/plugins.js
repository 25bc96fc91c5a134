/**
 * Which plugins there are, and putting their adapters into documents, once each.
 */
import * as documents from "./documents.js";
import { serves } from "./match.js";
import { RELAY, RUNTIME, register } from "./scripts.js";
import * as tabs from "./tabs.js";

/** @import { PluginFault, PluginSpec, SyncResult } from "../protocol.js" */
/** @import { Doc } from "./documents.js" */

const STORED = "plugins";

/** @type {PluginSpec[]} */
let specs = [];
/** @type {PluginFault[]} */
let faults = [];
let synced = false;
/** @type {Promise<void>} */
let restored = Promise.resolve();
/** @type {Promise<unknown>} */
let registering = Promise.resolve();

/** A worker that was just woken knows no plugins until the server syncs; storage does. */
export function restore() {
  restored = chrome.storage.session.get(STORED).then((stored) => {
    if (Array.isArray(stored[STORED])) {
      synced = true;
      specs = specs.length === 0 ? stored[STORED] : specs;
    }
  });
}

/** Resolves once the plugins are known. */
export function ready() {
  return restored;
}

/**
 * Whether no server has synced them since the extension was loaded. Until one has, no document
 * gets a call, and what documents had before a reload never comes back.
 */
export function areFresh() {
  return !synced;
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
  const old = specs;
  specs = plugins;
  faults = [];
  // One list after the other; but none waits for the pages of the one before, for a page can hang.
  registering = registering.then(prepare, prepare);
  await registering;
  const gone = old.map((spec) => spec.name).filter((name) => !isKnown(name));
  const outdated = plugins.filter((spec) => old.some((each) => hasOtherConfig(each, spec)));
  const [, ...counts] = await Promise.all([
    injectLate(),
    ...Array.from(documents.all(), (doc) => {
      for (const { name } of outdated.filter((spec) => doc.plugins.has(spec.name))) {
        doc.plugins.set(name, { file: "", readiness: "pending" });
      }
      return inject(doc, gone);
    }),
  ]);
  return { injected: counts.reduce((sum, count) => sum + count, 0), faults };
}

/** @param {string} name */
function isKnown(name) {
  return specs.some((spec) => spec.name === name);
}

async function prepare() {
  const plugins = specs;
  await chrome.storage.session.set({ [STORED]: plugins });
  synced = true;
  for (const fault of await register(plugins)) {
    faults.push({ ...fault, tabId: 0 });
  }
  for (const spec of plugins) {
    const closed = await withoutPermission(spec.matches);
    if (closed.length > 0) {
      if (await isAllowedByNow(closed)) {
        chrome.runtime.reload();
        return;
      }
      const message = `The browser keeps it out of ${closed.join(" and ")}. Allow the extension there, in its details on chrome://extensions.`;
      faults.push({ plugin: spec.name, tabId: 0, message: message.slice(0, 1000) });
    }
  }
}

/**
 * Whether the manifest has come to ask for one of these. Chrome reads it when it loads the extension.
 * @param {string[]} matches
 */
async function isAllowedByNow(matches) {
  const answer = await fetch(chrome.runtime.getURL("manifest.json"), { cache: "no-store" });
  /** @type {{ host_permissions: string[] }} */
  const { host_permissions: written } = await answer.json();
  const loaded = chrome.runtime.getManifest().host_permissions ?? [];
  return matches.some((match) => written.includes(match) && !loaded.includes(match));
}

/** @param {string[]} matches */
async function withoutPermission(matches) {
  const has = await Promise.all(
    matches.map((match) => chrome.permissions.contains({ origins: [match] }).catch(() => true)),
  );
  return matches.filter((_, index) => !has[index]);
}

/**
 * Whether a plugin must go into documents again though its adapter may be the same.
 * @param {PluginSpec} old
 * @param {PluginSpec} spec
 */
function hasOtherConfig(old, spec) {
  return old.name === spec.name && JSON.stringify(old.config) !== JSON.stringify(spec.config);
}

/**
 * Documents that were open before the extension get both late, and say so. That goes for one whose
 * relay has not answered, too: when the extension is reloaded, what it left behind may still
 * connect, and then hears nothing. A relay that is alive lets no other in.
 */
async function injectLate() {
  const open = await chrome.tabs.query({});
  const answered = Array.from(documents.all()).filter((doc) => doc.epoch !== documents.UNHEARD);
  const attached = new Set(answered.map((doc) => doc.tabId));
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
          files: RUNTIME,
          world: "MAIN",
          injectImmediately: true,
        });
        await chrome.scripting.executeScript({
          target,
          files: RELAY,
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
 * Puts the adapters that belong into a document and are not there yet, once it is complete, and
 * takes those away that are no more.
 * @param {Doc} doc
 * @param {string[]} [gone] the names of plugins that are no more
 * @returns {Promise<number>} how many went in
 */
export function inject(doc, gone = []) {
  // One after the other: each replaces what the one before has put there.
  const injected = doc.injecting.then(() => injectAll(doc, gone));
  doc.injecting = injected.catch(() => undefined);
  return injected;
}

/**
 * @param {Doc} doc
 * @param {string[]} gone
 */
async function injectAll(doc, gone) {
  await restored;
  const mine = specs.filter((spec) => serves(spec, doc.url));
  for (const name of new Set([...gone, ...doc.plugins.keys()])) {
    if (!isKnown(name)) {
      await remove(doc, name);
    }
    if (!mine.some((spec) => spec.name === name) && doc.plugins.delete(name)) {
      tabs.changed();
    }
  }
  if (!doc.complete) {
    for (const { name } of mine.filter((spec) => !doc.plugins.has(spec.name))) {
      doc.plugins.set(name, { file: "", readiness: "pending", reason: "the page is loading" });
      tabs.changed();
    }
    return 0;
  }
  let count = 0;
  for (const spec of mine) {
    if (doc.plugins.get(spec.name)?.file !== spec.file) {
      count += (await injectOne(doc, spec)) ? 1 : 0;
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
  tabs.changed();
  try {
    await makeRoom(doc, spec.name, spec.config);
    await chrome.scripting.executeScript({
      target: target(doc),
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
 * @param {Doc} doc
 * @param {string} name
 */
async function remove(doc, name) {
  try {
    await makeRoom(doc, name, null);
    documents.post(doc, { type: "drop", plugin: name });
  } catch (error) {
    console.debug("OpenTabs: a document went while a plugin was taken from it:", error);
  }
}

/**
 * @param {Doc} doc
 * @param {string} name
 * @param {Record<string, unknown> | null} config
 */
function makeRoom(doc, name, config) {
  return chrome.scripting.executeScript({
    target: target(doc),
    world: "MAIN",
    injectImmediately: true,
    func: replaceAdapter,
    args: [name, config],
  });
}

/** @param {Doc} doc */
function target(doc) {
  return { tabId: doc.tabId, documentIds: [doc.chromeId] };
}

/**
 * Runs in the page, before an adapter or in place of one: tears the old one down, takes it out,
 * and puts the settings where plugins look for them. A built adapter has frozen its entry, so
 * what holds the entries is replaced.
 * @param {string} name
 * @param {Record<string, unknown> | null} config
 */
function replaceAdapter(name, config) {
  const page = /** @type {any} */ (globalThis);
  try {
    const old = page.__openTabs?.adapters?.[name];
    if (old !== undefined) {
      try {
        old.teardown?.();
      } catch (error) {
        console.warn(`OpenTabs: the teardown of ${name} failed:`, error);
      }
      const { [name]: _, ...adapters } = page.__openTabs.adapters;
      page.__openTabs = { ...page.__openTabs, adapters };
    }
    if (config !== null && Object.keys(config).length > 0) {
      page.__openTabs ??= {};
      page.__openTabs.pluginConfig = { ...page.__openTabs.pluginConfig, ...config };
    }
  } catch (error) {
    console.warn(`OpenTabs: the page keeps ${name} from being replaced:`, error);
  }
}
