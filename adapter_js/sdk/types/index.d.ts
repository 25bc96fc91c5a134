export { clearAuthCache, getAuthCache, setAuthCache } from "./auth_cache.js";
export { getCookie } from "./cookies.js";
export { getMetaContent, getTextContent, observeDOM, querySelectorAll, waitForSelector, waitForSelectorRemoval, } from "./dom.js";
export { ToolError } from "./errors.js";
export { deleteJSON, fetchFromPage, fetchJSON, fetchText, patchJSON, postForm, postFormData, postJSON, putJSON, } from "./fetch.js";
export { log } from "./log.js";
export { getCurrentUrl, getPageGlobal, getPageTitle } from "./page.js";
export { buildQueryString, stripUndefined } from "./params.js";
export { OpenTabsPlugin } from "./plugin.js";
export { definePreScript, getPreScriptValue } from "./pre_script.js";
export { parseRateLimitHeader, parseRetryAfterMs } from "./rate_limit.js";
export { notifyReadinessChanged } from "./readiness.js";
export { getConfig } from "./settings.js";
export { httpStatusToToolError } from "./status.js";
export { findLocalStorageEntry, getLocalStorage, getSessionStorage, removeLocalStorage, removeSessionStorage, setLocalStorage, setSessionStorage, } from "./storage.js";
export { retry, sleep, waitUntil } from "./timing.js";
export { defineTool } from "./tool.js";
import type { z } from "zod";
import type * as Shapes from "./shapes.js";
export type ToolDefinition<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodType = z.ZodType> = Shapes.ToolDefinition<Input, Output>;
export type ToolAnnotations = Shapes.ToolAnnotations;
export type ConfigSchema = Shapes.ConfigSchema;
export type ConfigSetting = Shapes.ConfigSetting;
export type WaitForSelectorOptions = import("./dom.js").WaitForSelectorOptions;
export type ErrorCategory = import("./errors.js").ErrorCategory;
export type ToolErrorOptions = import("./errors.js").ToolErrorOptions;
export type FetchFromPageInit = import("./exchange.js").FetchFromPageInit;
export type PreScriptContext = import("./pre_script.js").PreScriptContext;
export type RateLimit = import("./rate_limit.js").RateLimit;
export type RetryOptions = import("./timing.js").RetryOptions;
export type SleepOptions = import("./timing.js").SleepOptions;
export type WaitUntilOptions = import("./timing.js").WaitUntilOptions;
export type ProgressOptions = import("./tool.js").ProgressOptions;
export type ToolHandlerContext = import("./tool.js").ToolHandlerContext;
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
