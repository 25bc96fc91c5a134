// The console's review of a plugin's build, with hand-written elements.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeDocument } from "./fake_dom.js";

// A computed name, so that tsc does not follow it: it would treat a page's modules as CommonJS.
const page = new URL("../../opentabs_py/console/page/", import.meta.url);
const { reviewSection } = await import(`${page}review.js`);

/** @import { FakeElement } from "./fake_dom.js" */

fakeDocument();

/** @param {object} more of the build that the server describes */
async function textOf(more) {
  const files = [{ name: "adapter.iife.js", size: 4, text: "code", left: 0 }];
  const build = { digest: "1", approved: null, files, changes: ["+a"], changesLeft: 0, ...more };
  const link = { get: async () => build };
  const { element, read } = reviewSection(link, { name: "notes", standing: "changed" });
  await read();
  return /** @type {FakeElement} */ (element).text();
}

test("a plugin that changes during its review is shown again, and only that build is approved", async () => {
  const files = [{ name: "adapter.iife.js", size: 4, text: "code", left: 0 }];
  let digest = "old";
  /** @type {string[]} */
  const approved = [];
  const link = {
    get: async () => ({ digest, approved: null, files, changes: [`+${digest}`], changesLeft: 0 }),
    post: async (/** @type {string} */ _path, /** @type {{digest: string}} */ body) => {
      if (body.digest !== digest) throw new Error("stale");
      approved.push(body.digest);
    },
  };
  const { element, read } = reviewSection(link, { name: "notes", standing: "changed" });
  await read();
  digest = "new";
  const review = /** @type {FakeElement} */ (element);
  const approve = async () => {
    review
      .all()
      .find((each) => each.name === "button")
      ?.fire("click");
    await new Promise(setImmediate);
  };
  await approve();
  assert.deepEqual(approved, []);
  const notice = review.all().find((each) => each.attributes.role === "alert");
  assert.match(notice?.textContent ?? "", /^The plugin has just changed\. This is its new build/);
  assert.match(review.text(), /\+new/);
  await approve();
  assert.deepEqual(approved, ["new"]);
});

test("a review says what it does not show, and where all of it can be read", async () => {
  assert.doesNotMatch(await textOf({}), /Not shown/);
  const files = [{ name: "adapter.iife.js", size: 9, text: "code", left: 5000 }];
  assert.match(
    await textOf({ changesLeft: 1, files }),
    /here: 1 line of what has changed, and the last 5,000 characters of adapter\.iife\.js\. .*opentabs review notes --source/,
  );
});
