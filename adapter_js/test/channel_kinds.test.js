// The kinds of messages between relay and page are documented.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (/** @type {string} */ path) =>
  readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const all = (/** @type {string} */ text, /** @type {RegExp} */ pattern) =>
  [...new Set(Array.from(text.matchAll(pattern), (match) => match[1]))].sort();

const relay = read("extension/content/relay.js") + read("extension/content/channel.js");
const page = read("adapter_js/runtime.js") + read("extension/content/page_tools.js");

/** @param {"relay" | "page"} end */
function documented(end) {
  const section = read("docs/protocol.md").split("\n## Between relay and page\n")[1] ?? "";
  const kinds = all(section, new RegExp(`^\\| ${end} \\| \`([a-z.]+)\` `, "gm"));
  assert.ok(kinds.length > 5);
  return kinds;
}

test("each end sends the documented kinds, and no others", () => {
  assert.deepEqual(all(relay, /\.send\(\s*"([a-z.]+)"/g), documented("relay"));
  assert.deepEqual(all(page, /(?:\bsend\(|\bkind = )"([a-z.]+)"/g), documented("page"));
});

test("each end receives the documented kinds, and no others", () => {
  const handled = (/** @type {string} */ text, /** @type {string} */ name) =>
    text.split(`function ${name}(`)[1]?.split("\n  }\n")[0] ?? "";
  const kinds = /(?:case|kind ===) "([a-z.]+)"/g;

  assert.deepEqual(all(handled(page, "handleMessage"), kinds), documented("relay"));
  assert.deepEqual(all(handled(relay, "handleFromPage"), kinds), documented("page"));
});
