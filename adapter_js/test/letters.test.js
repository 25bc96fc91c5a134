// The letters of the messages between relay and page: documented, each with one meaning.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (/** @type {string} */ path) =>
  readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const sorted = (/** @type {Iterable<string | undefined>} */ letters) =>
  [...new Set(letters)].sort();
const all = (/** @type {string} */ text, /** @type {RegExp} */ pattern) =>
  Array.from(text.matchAll(pattern), (match) => match[1]);

const documented = all(read("docs/protocol.md"), /^\| (?:relay|page) \| `(.)` /gm);
const from = (/** @type {string} */ end) =>
  sorted(all(read("docs/protocol.md"), new RegExp(`^\\| ${end} \\| \`(.)\` `, "gm")));

test("each letter has one meaning, regardless of which end sends it", () => {
  assert.equal(new Set(documented).size, documented.length);
  assert.ok(documented.length > 10);
});

test("each end sends the documented letters, and no others", () => {
  const relay = read("extension/content/relay.js") + read("extension/content/channel.js");
  const page = read("adapter_js/runtime.js") + read("extension/content/page_tools.js");

  assert.deepEqual(sorted(all(relay, /\.send\(`([a-z])\$\{/g)), from("relay"));
  assert.deepEqual(sorted(all(page, /(?:send\(|= )`([a-z])\$\{/g)), from("page"));
});

test("each end receives the documented letters, and faults select the same ones", () => {
  const faults = read("opentabs_py/testing/faults.js");
  const keys = (/** @type {string} */ name) =>
    sorted(all(faults.split(`const ${name} =`)[1]?.split("});")[0] ?? "", /^ {4}([a-z]):/gm));

  assert.deepEqual(sorted(all(read("adapter_js/runtime.js"), /case "(.)":/g)), from("relay"));
  assert.deepEqual(
    sorted(all(read("extension/content/relay.js"), /(?:case|kind ===) "(.)"/g)),
    from("page"),
  );
  assert.deepEqual([keys("DOWN"), keys("UP")], [from("relay"), from("page")]);
});
