// The extension's match patterns, with the same table of cases as the server's.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { serving } from "../../extension/background/match.js";

const TABLE = new URL("../../tests/core/sites/match_cases.json", import.meta.url);
/** @type {{matching: [string, string][], other: [string, string][]}} */
const { matching, other } = JSON.parse(readFileSync(TABLE, "utf8"));

/**
 * @param {{matches: string[], excludeMatches: string[]}} plugin
 * @param {string} url
 */
const serves = (plugin, url) => serving([plugin], url).length === 1;

for (const [pattern, url] of matching) {
  test(`${pattern} matches ${url}`, () => {
    assert.equal(serves({ matches: [pattern], excludeMatches: [] }, url), true);
  });
}

for (const [pattern, url] of other) {
  test(`${pattern} does not match ${url}`, () => {
    assert.equal(serves({ matches: [pattern], excludeMatches: [] }, url), false);
  });
}

test("a URL that an exclude pattern matches is not served", () => {
  const plugin = {
    matches: ["https://a.example/*"],
    excludeMatches: ["https://a.example/admin/*"],
  };
  assert.equal(serves(plugin, "https://a.example/admin/x"), false);
  assert.equal(serves(plugin, "https://a.example/x"), true);
});

test("a plugin without patterns serves no URL", () => {
  assert.equal(serves({ matches: [], excludeMatches: [] }, "https://a.example/"), false);
});

test("matching a long hostile path does not backtrack", () => {
  const pattern = `https://a.example/${"*a".repeat(40)}b`; // backtracking would never end
  const url = `https://a.example/${"a".repeat(10_000)}`;
  assert.equal(serves({ matches: [pattern], excludeMatches: [] }, url), false);
});
