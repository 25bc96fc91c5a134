// The faults that the test kit injects into the page's relay: the same rules as in Python.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const SCRIPT = readFileSync(
  new URL("../../opentabs_py/testing/faults.js", import.meta.url),
  "utf8",
);

/** A relay's world with the script in it; `plan` are the rules that the storage holds. */
async function world(/** @type {unknown} */ plan) {
  /** @type {[string, string][]} */
  const told = [];
  /** @type {any[]} */
  const posted = [];
  /** @type {((message: any) => void)[]} */
  const listeners = [];
  /** @type {((changes: any) => void)[]} */
  const changed = [];
  /** @type {string[]} */
  const written = [];
  const root = { dataset: /** @type {Record<string, string>} */ ({}) };
  const scope = vm.createContext({
    setTimeout,
    console: { debug: (/** @type {string} */ text) => written.push(text) },
    document: { documentElement: root },
    PageChannel: class {
      /** @param {(kind: string, text: string) => void} handle */
      constructor(handle) {
        this.receive = handle;
      }
      /** @param {[string, string]} message */
      send(...message) {
        told.push(message);
        return true;
      }
    },
    chrome: {
      runtime: {
        connect: () => ({
          postMessage: (/** @type {any} */ message) => posted.push(message),
          onMessage: { addListener: (/** @type {any} */ listener) => listeners.push(listener) },
          onDisconnect: {},
          disconnect: () => {},
        }),
      },
      storage: {
        onChanged: { addListener: (/** @type {any} */ listener) => changed.push(listener) },
        local: { get: async () => ({ faults: plan }) },
      },
    },
  });
  vm.runInContext(SCRIPT, scope);
  await new Promise((resolve) => setImmediate(resolve));
  /** @type {[string, string][]} */
  const handled = [];
  scope.handle = (/** @type {string} */ kind, /** @type {string} */ text) =>
    handled.push([kind, text]);
  const channel = vm.runInContext("new PageChannel(handle)", scope);
  const port = scope.chrome.runtime.connect();
  /** @type {any[]} */
  const heard = [];
  port.onMessage.addListener((/** @type {any} */ message) => heard.push(message));
  return { channel, port, told, posted, handled, heard, listeners, changed, root, written };
}

const rule = (/** @type {Record<string, unknown>} */ changes) => ({
  hop: "port",
  action: "drop",
  direction: null,
  kind: null,
  nth: null,
  number: 0,
  ms: 0,
  ...changes,
});
const plan = (/** @type {object[]} */ ...rules) => ({
  draws: [0.601, 0.25],
  epoch: 1,
  version: 3,
  rules,
});
const frame = (/** @type {string} */ method) =>
  `{"jsonrpc":"2.0","method":"${method}","params":{}}`;

for (const [action, wanted] of /** @type {[string, string[]][]} */ ([
  ["drop", ["a", "c"]],
  ["duplicate", ["a", "b", "b", "c"]],
  ["reorder", ["a", "c", "b"]],
  ["delay", ["a", "b", "c"]],
])) {
  test(`on the port, ${action} applies to the nth message`, async () => {
    const { port, posted } = await world(plan(rule({ action, nth: [2] })));

    for (const message of ["a", "b", "c"]) {
      port.postMessage(message);
    }

    assert.deepEqual(posted, wanted);
  });
}

test("a delayed message also delays those behind it", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { port, posted } = await world(plan(rule({ action: "delay", nth: [1], ms: 500 })));

  port.postMessage("a");
  port.postMessage("b");
  const before = [...posted];
  context.mock.timers.tick(500);

  assert.deepEqual([before, posted], [[], ["a", "b"]]);
});

test("rules apply to messages down the port as to messages up", async () => {
  const { listeners, heard } = await world(plan(rule({ direction: "down", kind: "tool.ack" })));

  listeners[0]?.(frame("tool.ack"));
  listeners[0]?.(frame("tool.cancel"));

  assert.deepEqual(heard, [frame("tool.cancel")]);
});

test("a traced frame has the kind of the message it carries", async () => {
  const { port, posted } = await world(plan(rule({ kind: "tool.result" })));

  port.postMessage({ type: "traced", callId: "1", frame: frame("tool.result") });
  port.postMessage({ type: "received", callId: "1" });

  assert.deepEqual(posted, [{ type: "received", callId: "1" }]);
});

test("on the event hop, rules match the page's messages by kind", async () => {
  const { channel, handled } = await world(
    plan(rule({ hop: "event", kind: "tool.progress", nth: [1] })),
  );

  channel.receive("tool.progress", "one");
  channel.receive("tool.progress", "two");
  channel.receive("tool.result", "end");

  assert.deepEqual(handled, [
    ["tool.progress", "two"],
    ["tool.result", "end"],
  ]);
});

test("on the event hop, a message to the page is dropped, and the relay sees it as received", async () => {
  const { channel, told } = await world(plan(rule({ hop: "event", direction: "down" })));

  assert.equal(channel.send("tool.cancel", "123"), true);
  assert.deepEqual(told, []);
});

test("the next random number selects the character to corrupt, and the numbers repeat", async () => {
  const { port, posted } = await world(plan(rule({ action: "corrupt" })));

  for (let i = 0; i < 3; i++) {
    port.postMessage("a".repeat(1000));
  }

  assert.deepEqual(
    posted.map((text) => text.indexOf("#")),
    [601, 250, 601],
  );
  assert.equal(posted[0], `${"a".repeat(601)}#${"a".repeat(398)}`);
});

test("without rules all messages pass, and the document confirms the rules", async () => {
  const { channel, port, told, posted, handled, root } = await world(undefined);

  channel.send("tool.dispatch", "1");
  channel.receive("tool.result", "2");
  port.postMessage("a");

  assert.deepEqual(told, [["tool.dispatch", "1"]]);
  assert.deepEqual(handled, [["tool.result", "2"]]);
  assert.deepEqual(posted, ["a"]);
  assert.equal(root.dataset.opentabsFaults, "0");
});

test("each fault is reported with its rule, direction and message number", async () => {
  const rules = [rule({ nth: [9], number: 4 }), rule({ kind: "tool.result", number: 5 })];
  const { port, listeners, written } = await world(plan(...rules));

  port.postMessage(frame("tool.progress"));
  port.postMessage(frame("tool.result"));
  listeners[0]?.(frame("tool.result"));
  port.postMessage(frame("tool.result"));

  assert.deepEqual(written, [
    'OpenTabs: fault [1,5,"up",1]',
    'OpenTabs: fault [1,5,"down",1]',
    'OpenTabs: fault [1,5,"up",2]',
  ]);
});

test("adding rules keeps the counts of the rules before them", async () => {
  const first = rule({ nth: [3] });
  const { port, posted, changed } = await world(plan(first));
  port.postMessage("a");

  changed[0]?.({ faults: { newValue: { ...plan(first, rule({ nth: [9] })), version: 4 } } });
  for (const message of ["b", "c", "d"]) {
    port.postMessage(message);
  }

  assert.deepEqual(posted, ["a", "b", "d"]);
});

test("rules of a new epoch replace the old and count from one", async () => {
  const { port, posted, changed, root } = await world(plan(rule({ nth: [1] })));
  port.postMessage("a");

  changed[0]?.({ faults: { newValue: { ...plan(rule({ nth: [1] })), epoch: 2, version: 4 } } });
  port.postMessage("b");
  port.postMessage("c");

  assert.deepEqual(posted, ["c"]);
  assert.equal(root.dataset.opentabsFaults, "4");
});
