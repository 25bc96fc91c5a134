/**
 * The build wraps each plugin in this code, which registers the plugin's adapter in the page. The
 * host calls the adapter's `isReady`, its tools' `handle` and its `teardown`; this code calls the
 * plugin's hooks.
 */

import { ToolError } from "./errors.js";
import { arrival } from "./host.js";
import { flushLogs, log } from "./log.js";
import { registry, replaceRegistry } from "./registry.js";
import { parse } from "./schema.js";

/** @import { OpenTabsPlugin, ToolDefinition } from "./shapes.js" */
/** @import { ToolHandlerContext } from "./tool.js" */

/** @typedef {Extract<keyof OpenTabsPlugin, "teardown" | `on${string}`>} Hook */
/** @typedef {(hook: Hook, ...args: unknown[]) => void} CallHook */

/**
 * @typedef {object} Build
 * @property {string} name the plugin's name, under which the host looks it up
 * @property {string} hash the hash of the adapter's source
 */

/**
 * Runs once, when the adapter's file is evaluated, in the MAIN world, when the document is
 * complete.
 *
 * @param {OpenTabsPlugin | (new () => OpenTabsPlugin)} pluginOrClass
 * @param {Build} build
 */
export function register(pluginOrClass, { name, hash }) {
  const plugin = typeof pluginOrClass === "function" ? new pluginOrClass() : pluginOrClass;
  const call = hooksOf(plugin);
  const adapter = Object.freeze({
    name,
    displayName: plugin.displayName,
    tools: Object.freeze(plugin.tools.map((tool) => wrap(tool, call))),
    isReady: () => isReady(plugin),
    teardown: once(() => {
      call("onDeactivate");
      call("teardown");
      stopWatching();
      flushLogs();
    }),
    deliversLogs: true, // see `handle` below
    __adapterHash: hash,
  });
  let stopWatching = () => {};
  tearDown(registry().adapters?.[name]);
  enter(name, adapter);
  stopWatching = watchLocation((url) => call("onNavigate", url));
  call("onActivate");
}

/**
 * Updates the registry as the ecosystem's builds do: the entry is frozen, `adapters` is not
 * writable, and everything is in a new object, because an earlier plugin may have locked the old
 * one.
 *
 * @param {string} name
 * @param {object} adapter
 */
function enter(name, adapter) {
  const before = registry();
  const entries = Object.getOwnPropertyDescriptors(before.adapters ?? {});
  const own = { value: adapter, enumerable: true };
  const adapters = Object.defineProperties({}, { ...entries, [name]: own });
  const lock = { value: adapters, enumerable: true, writable: false, configurable: false };
  replaceRegistry(Object.defineProperty({ ...before }, "adapters", lock));
}

/** @param {{teardown?: () => unknown} | undefined} older */
function tearDown(older) {
  try {
    older?.teardown?.();
  } catch (error) {
    log.error("The previous adapter failed to stop", error);
  }
}

/**
 * @param {OpenTabsPlugin} plugin
 * @returns {CallHook} errors of hooks are logged, and hooks are not awaited
 */
function hooksOf(plugin) {
  return (hook, ...args) => {
    const complain = (/** @type {unknown} */ error) => log.error(`${hook}() failed`, error);
    try {
      const method = /** @type {((...args: unknown[]) => unknown) | undefined} */ (plugin[hook]);
      Promise.resolve(method?.apply(plugin, args)).catch(complain);
    } catch (error) {
      complain(error);
    }
  };
}

/**
 * @param {ToolDefinition} tool
 * @param {CallHook} call
 */
function wrap(tool, call) {
  /**
   * @param {unknown} params
   * @param {ToolHandlerContext} [context]
   */
  async function handle(params, context) {
    const started = performance.now();
    let success = false;
    call("onToolInvocationStart", tool.name);
    try {
      const result = await tool.handle(await parse(tool.input, params, refuse), context);
      success = true;
      return result;
    } finally {
      call("onToolInvocationEnd", tool.name, success, performance.now() - started);
      if (flushLogs()) {
        await arrival(); // so that the caller receives the logs before the result
      }
    }
  }
  return Object.freeze({ name: tool.name, handle });
}

/** @param {string} issues */
function refuse(issues) {
  return ToolError.validation(`The arguments are not valid: ${issues}`);
}

/** @param {OpenTabsPlugin} plugin */
async function isReady(plugin) {
  try {
    return Boolean(await plugin.isReady());
  } catch (error) {
    log.debug("isReady() failed", error);
    throw error; // the host then says why the plugin is not ready
  }
}

/**
 * The Navigation API reports every URL change, whatever causes it, and does not patch the page's
 * `history`, so there is nothing to restore, and plugins do not interfere with each other. A page
 * may have a global `navigation` of its own instead; then only the older events are left, which do
 * not report `history.pushState()`.
 *
 * @param {(url: string) => void} tell
 * @returns {() => void} stops watching
 */
function watchLocation(tell) {
  const { navigation, location } = window;
  let url = location.href;
  const look = () => {
    if (location.href !== url) {
      url = location.href;
      tell(url);
    }
  };
  /** @type {[EventTarget, string][]} */
  const sources = [
    [window, "popstate"],
    [window, "hashchange"],
  ];
  if (navigation instanceof EventTarget) {
    sources.push([navigation, "currententrychange"]);
  }
  for (const [target, type] of sources) {
    target.addEventListener(type, look);
  }
  return () => {
    for (const [target, type] of sources) {
      target.removeEventListener(type, look);
    }
  };
}

/** @param {() => void} run */
function once(run) {
  let done = false;
  return () => {
    if (!done) {
      done = true;
      run();
    }
  };
}
