// What the extension's icon shows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { showActivity, showState, TROUBLE } from "../../extension/background/badge.js";

/** @type {Record<string, any>} */
const shown = {};
globalThis.chrome = /** @type {any} */ ({
  storage: { session: { set: async (/** @type {any} */ items) => Object.assign(shown, items) } },
  action: {
    setBadgeText: (/** @type {any} */ { text }) => Object.assign(shown, { text }),
    setBadgeTextColor: () => {},
    setBadgeBackgroundColor: (/** @type {any} */ { color }) => Object.assign(shown, { color }),
    setTitle: (/** @type {any} */ { title }) => Object.assign(shown, { title }),
  },
});

/**
 * @param {number} running
 * @param {number} waiting
 */
function badge(running, waiting) {
  showActivity({ running, waiting });
  return [shown.text, shown.title];
}

test("the badge shows the sum of running and waiting calls, and the tooltip shows each", () => {
  assert.deepEqual(badge(1, 0), ["1", "OpenTabs: 1 call runs"]);
  assert.deepEqual(badge(2, 1), ["3", "OpenTabs: 2 calls run, 1 call waits for you"]);
  assert.deepEqual(badge(0, 2), ["2", "OpenTabs: 2 calls wait for you"]);
  assert.deepEqual(badge(0, 0), ["", "OpenTabs: connected"]);
});

test("a count that does not fit on the icon is shown as 999+", () => {
  assert.equal(badge(999, 0)[0], "999");
  assert.deepEqual(badge(999, 1), ["999+", "OpenTabs: 999 calls run, 1 call waits for you"]);
});

test("the badge has another color while a call waits for the user", () => {
  badge(3, 0);
  const running = shown.color;
  badge(3, 1);
  assert.notEqual(shown.color, running);
});

test("a change of the connection state clears the badge", () => {
  badge(3, 0);
  showState("not connected");
  assert.deepEqual([shown.text, shown.title], ["", "OpenTabs: not connected"]);
});

test("what is wrong with the connection is in the tooltip, and kept for the side panel", () => {
  showState("not connected", "another version");
  assert.equal(shown.title, "OpenTabs: not connected: another version");
  assert.equal(shown[TROUBLE], "not connected: another version");
  badge(0, 0);
  assert.equal(shown[TROUBLE], "not connected: another version");
  showState("connected");
  assert.equal(shown[TROUBLE], "");
});
