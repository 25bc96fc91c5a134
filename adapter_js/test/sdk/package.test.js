import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import * as sdk from "../../sdk/index.js";
import * as preScript from "../../sdk/pre_script.js";

const root = new URL("../../sdk/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("package.json", root), "utf8"));

test("the package exports everything that the ecosystem's plugins import", () => {
  const names = `
    OpenTabsPlugin ToolError buildQueryString clearAuthCache definePreScript defineTool deleteJSON
    fetchFromPage fetchJSON fetchText findLocalStorageEntry getAuthCache getConfig getCookie
    getCurrentUrl getLocalStorage getMetaContent getPageGlobal getPageTitle getPreScriptValue
    getSessionStorage getTextContent httpStatusToToolError log notifyReadinessChanged observeDOM
    parseRateLimitHeader parseRetryAfterMs patchJSON postForm postFormData postJSON putJSON
    querySelectorAll removeLocalStorage removeSessionStorage retry setAuthCache setLocalStorage
    setSessionStorage sleep stripUndefined waitForSelector waitForSelectorRemoval waitUntil`;
  assert.deepEqual(Object.keys(sdk).sort(), names.trim().split(/\s+/));
  assert.equal(preScript.definePreScript, sdk.definePreScript);
});

test("every file that the package names exists", () => {
  for (const files of Object.values(manifest.exports)) {
    for (const path of Object.values(files)) {
      assert.ok(existsSync(new URL(path, root)), path);
    }
  }
});

test("defineTool returns its argument", () => {
  const tool = /** @type {any} */ ({ name: "a" });
  assert.equal(sdk.defineTool(tool), tool);
});

test("a plugin has only the members that its author defines", () => {
  class Shop extends /** @type {any} */ (sdk.OpenTabsPlugin) {
    name = "shop";
  }
  const plugin = new Shop();
  assert.ok(plugin instanceof sdk.OpenTabsPlugin);
  assert.deepEqual(Object.keys(plugin), ["name"]);
  assert.equal(/** @type {any} */ (plugin).onActivate, undefined);
});
