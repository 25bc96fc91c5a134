// Everything that plugin authors import.

export { clearAuthCache, getAuthCache, setAuthCache } from "./auth_cache.js";
export { getCookie } from "./cookies.js";
export {
  getMetaContent,
  getTextContent,
  observeDOM,
  querySelectorAll,
  waitForSelector,
  waitForSelectorRemoval,
} from "./dom.js";
export { ToolError } from "./errors.js";
export {
  deleteJSON,
  fetchFromPage,
  fetchJSON,
  fetchText,
  patchJSON,
  postForm,
  postFormData,
  postJSON,
  putJSON,
} from "./fetch.js";
export { log } from "./log.js";
export { getCurrentUrl, getPageGlobal, getPageTitle } from "./page.js";
export { buildQueryString, stripUndefined } from "./params.js";
export { OpenTabsPlugin } from "./plugin.js";
export { definePreScript, getPreScriptValue } from "./pre_script.js";
export { parseRateLimitHeader, parseRetryAfterMs } from "./rate_limit.js";
export { notifyReadinessChanged } from "./readiness.js";
export { getConfig } from "./settings.js";
export { httpStatusToToolError } from "./status.js";
export {
  findLocalStorageEntry,
  getLocalStorage,
  getSessionStorage,
  removeLocalStorage,
  removeSessionStorage,
  setLocalStorage,
  setSessionStorage,
} from "./storage.js";
export { retry, sleep, waitUntil } from "./timing.js";
export { defineTool } from "./tool.js";

/** @import { z } from "zod" */
/** @import * as Shapes from "./shapes.js" */

/**
 * @template {z.ZodObject} [Input=z.ZodObject]
 * @template {z.ZodType} [Output=z.ZodType]
 * @typedef {Shapes.ToolDefinition<Input, Output>} ToolDefinition
 */
/** @typedef {Shapes.ToolAnnotations} ToolAnnotations */
/** @typedef {Shapes.ConfigSchema} ConfigSchema */
/** @typedef {Shapes.ConfigSetting} ConfigSetting */
/** @typedef {import("./dom.js").WaitForSelectorOptions} WaitForSelectorOptions */
/** @typedef {import("./errors.js").ErrorCategory} ErrorCategory */
/** @typedef {import("./errors.js").ToolErrorOptions} ToolErrorOptions */
/** @typedef {import("./exchange.js").FetchFromPageInit} FetchFromPageInit */
/** @typedef {import("./pre_script.js").PreScriptContext} PreScriptContext */
/** @typedef {import("./rate_limit.js").RateLimit} RateLimit */
/** @typedef {import("./timing.js").RetryOptions} RetryOptions */
/** @typedef {import("./timing.js").SleepOptions} SleepOptions */
/** @typedef {import("./timing.js").WaitUntilOptions} WaitUntilOptions */
/** @typedef {import("./tool.js").ProgressOptions} ProgressOptions */
/** @typedef {import("./tool.js").ToolHandlerContext} ToolHandlerContext */
