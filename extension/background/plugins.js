/**
 * Keeps the list of plugins, and injects each adapter into each of its documents once.
 */
import * as link from "./link.js";
import * as registry from "./registry.js";
import { isEarly, RELAY, RUNTIME, register } from "./scripts.js";
import * as tabs from "./tabs.js";

/** @import { PluginProblem, PluginSpec, SyncResult } from "../protocol.js" */
/** @import { Doc } from "./registry.js" */

// What Chrome says of a document that was left meanwhile, or could not be loaded. The next one has
// everything from its start.
const NOT_THERE =
  /^Error: (No (tab|frame|documents?) with id|Frame with ID \d+ (was removed|is showing error page))/i;
/** @type {Promise<unknown>} */
let registering = Promise.resolve();
/** @type {Map<string, Promise<unknown>>} late injections that have not ended, by place and files */
const injectingLate = new Map();

/**
 * @param {PluginSpec[]} plugins all plugins; any other is removed
 * @returns {Promise<SyncResult>}
 */
export async function sync(plugins) {
  await registry.ready();
  const old = registry.plugins();
  registry.setPlugins(plugins);
  /** @type {PluginProblem[]} */
  const problems = [];
  const prepareNext = () => prepare(problems);
  // Lists are applied one after the other, but do not wait for pages, because a page can hang.
  registering = registering.then(prepareNext, prepareNext);
  await registering;
  const gone = old.map((spec) => spec.name).filter((name) => !registry.isKnown(name));
  const [, ...counts] = await Promise.all([
    injectLate(problems),
    ...Array.from(registry.documents.values(), (doc) => inject(doc, gone, problems)),
  ]);
  return { injected: counts.reduce((sum, count) => sum + count, 0), problems };
}

/** @param {PluginProblem[]} problems */
async function prepare(problems) {
  const plugins = registry.plugins();
  await registry.store();
  for (const problem of await register(plugins)) {
    problems.push({ ...problem, tabId: 0 });
  }
  // Nearly always all are allowed, and asking once is faster than asking for each plugin.
  const origins = plugins.flatMap((spec) => spec.matches);
  if (await chrome.permissions.contains({ origins }).catch(() => false)) {
    return;
  }
  for (const spec of plugins) {
    const closed = await withoutPermission(spec.matches);
    if (closed.length > 0) {
      if (await isAllowedByNow(closed)) {
        link.end();
        chrome.runtime.reload();
        return;
      }
      const message = `The browser does not allow it on ${closed.join(" and ")}. Allow the extension there, in its details on chrome://extensions.`;
      problems.push({ plugin: spec.name, tabId: 0, message: message.slice(0, 1000) });
    }
  }
}

/**
 * Whether the manifest now requests one of these. Chrome reads it only when it loads the extension.
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
 * What is injected of a plugin. Its relay keeps it, because a document may miss a change: in the
 * back/forward cache, or because the worker ends.
 * @param {PluginSpec} spec
 */
function injectionOf({ file, config }) {
  return `${file} ${JSON.stringify(config)}`;
}

/**
 * Documents that were open before the extension was loaded get runtime and relay late, and report
 * that. So do documents whose relay has not answered: after a reload, a leftover relay may still
 * connect, but receives nothing. A live relay does not let another one in. A tab that is discarded
 * has no document; it loads one when the user returns to it, or a call needs it.
 * @param {PluginProblem[]} problems
 */
async function injectLate(problems) {
  const open = await chrome.tabs.query({});
  const answered = Array.from(registry.documents.values()).filter(
    (doc) => doc.epoch !== registry.UNHEARD,
  );
  const attached = new Set(answered.map((doc) => doc.tabId));
  const without = open.filter(
    ({ id, status }) => id !== undefined && status !== "unloaded" && !attached.has(id),
  );
  await Promise.all(without.map((tab) => injectTab(tab, problems)));
}

/**
 * Handles a tab that may have loaded. Its document has no relay if it was just replacing another
 * while the scripts were registered, or if it is older than they are and was in the back/forward
 * cache then.
 * @param {chrome.tabs.Tab} tab
 */
export async function handleLoaded(tab) {
  await registry.ready();
  const isAttached = Array.from(registry.documents.values()).some((doc) => doc.tabId === tab.id);
  if (tab.status === "complete" && !isAttached) {
    /** @type {PluginProblem[]} */
    const problems = [];
    await injectTab(tab, problems);
    for (const { plugin, message } of problems) {
      console.debug(`OpenTabs: cannot inject ${plugin} into a loaded tab:`, message);
    }
  }
}

/**
 * @param {chrome.tabs.Tab} tab
 * @param {PluginProblem[]} problems
 */
async function injectTab({ id, url }, problems) {
  if (id === undefined || url === undefined) {
    return;
  }
  const mine = registry.serving(url);
  if (mine.length === 0) {
    return;
  }
  try {
    await injectOnce(id, url, [...mine.flatMap((spec) => spec.early ?? []), ...RUNTIME]);
  } catch (error) {
    if (!NOT_THERE.test(String(error))) {
      for (const spec of mine) {
        problems.push({ plugin: spec.name, tabId: id, message: String(error).slice(0, 1000) });
      }
    }
  }
}

/**
 * Injects a runtime and a relay, unless that is under way: a page that hangs would run all that were
 * injected meanwhile, and keep every runtime.
 * @param {number} tabId
 * @param {string} url that it shows
 * @param {string[]} runtime
 */
function injectOnce(tabId, url, runtime) {
  const place = JSON.stringify([tabId, url, runtime]);
  let injecting = injectingLate.get(place);
  if (injecting === undefined) {
    injecting = injectBoth({ tabId }, runtime).finally(() => injectingLate.delete(place));
    injectingLate.set(place, injecting);
  }
  return injecting;
}

/**
 * @param {chrome.scripting.InjectionTarget} target
 * @param {string[]} runtime
 */
async function injectBoth(target, runtime) {
  const now = /** @type {const} */ ({ target, injectImmediately: true });
  // The runtime comes first, because adapters follow as soon as the relay is there.
  await chrome.scripting.executeScript({ ...now, files: runtime, world: "MAIN" });
  await chrome.scripting.executeScript({ ...now, files: RELAY });
}

/**
 * Injects missing adapters into a document once it is complete, and removes those of plugins that
 * were removed or do not serve its URL any more.
 * @param {Doc} doc
 * @param {string[]} [gone] the names of removed plugins
 * @param {PluginProblem[]} [problems] receives what goes wrong
 * @returns {Promise<number>} how many were injected
 */
export function inject(doc, gone = [], problems = []) {
  // One after the other, because each replaces what the previous one set.
  const injected = doc.injecting.then(() => injectAll(doc, gone, problems));
  doc.injecting = injected.catch(() => undefined);
  return injected;
}

/**
 * @param {Doc} doc
 * @param {string[]} gone
 * @param {PluginProblem[]} problems
 */
async function injectAll(doc, gone, problems) {
  await registry.ready();
  const mine = registry.serving(doc.url);
  for (const name of new Set([...gone, ...doc.plugins.keys()])) {
    if (!mine.some((spec) => spec.name === name)) {
      await remove(doc, name);
    }
  }
  if (!doc.complete) {
    for (const { name } of mine.filter((spec) => !doc.plugins.has(spec.name))) {
      doc.plugins.set(name, { injected: "", readiness: "pending", reason: "the page is loading" });
      tabs.sendState();
    }
    return 0;
  }
  let count = 0;
  for (const spec of mine) {
    if (doc.plugins.get(spec.name)?.injected !== injectionOf(spec)) {
      count += (await injectOne(doc, spec, problems)) ? 1 : 0;
    }
  }
  return count;
}

/**
 * @param {Doc} doc
 * @param {PluginSpec} spec
 * @param {PluginProblem[]} problems
 */
async function injectOne(doc, spec, problems) {
  const injected = injectionOf(spec);
  doc.plugins.set(spec.name, { injected, readiness: "pending" });
  tabs.sendState();
  try {
    if (!isEarly(spec)) {
      await makeRoom(doc, spec.name, spec.config);
      await chrome.scripting.executeScript({
        target: target(doc),
        world: "MAIN",
        injectImmediately: true,
        files: [spec.file],
      });
    }
    registry.post(doc, { type: "adopt", plugin: spec.name, injected });
    tabs.sendState();
    return true;
  } catch (error) {
    const message = `its adapter could not be injected: ${error}`.slice(0, 1000);
    if (!NOT_THERE.test(String(error))) {
      problems.push({ plugin: spec.name, tabId: doc.tabId, message });
    }
    const state = /** @type {const} */ ({ readiness: "missing", reason: message });
    doc.plugins.set(spec.name, { injected, ...state, hasFailed: true });
    registry.stopAwaiting(doc, [spec.name]); // its relay does not know it, and will not answer
    tabs.sendState();
    return false;
  }
}

/**
 * @param {Doc} doc
 * @param {string} name
 */
async function remove(doc, name) {
  if (doc.plugins.delete(name)) {
    tabs.sendState();
  }
  registry.stopAwaiting(doc, [name]);
  try {
    await makeRoom(doc, name, null);
    registry.post(doc, { type: "drop", plugin: name });
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
 * Runs in the page, before an adapter or instead of one: tears down the old adapter, removes it,
 * and sets the settings where plugins look for them, without those that were removed since: those
 * of each plugin are kept beside them. A built adapter has frozen its entry, so the object that holds
 * the entries is replaced.
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
    const { [name]: before, ...others } = page.__openTabs?.configs ?? {};
    const hasSettings = config !== null && Object.keys(config).length > 0;
    if (before !== undefined || hasSettings) {
      const pluginConfig = { ...page.__openTabs?.pluginConfig };
      for (const key of Object.keys(before ?? {})) {
        delete pluginConfig[key];
      }
      Object.assign(pluginConfig, ...Object.values(others), config);
      const configs = hasSettings ? { ...others, [name]: config } : others;
      page.__openTabs = { ...page.__openTabs, pluginConfig, configs };
    }
  } catch (error) {
    console.warn(`OpenTabs: the page keeps ${name} from being replaced:`, error);
  }
}
