// The relay: its connection, calls and the channel to the runtime.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CALL, channelEnd } from "./fakes.js";
import { MEBI, seqs, startCall, startLogs, startRelay } from "./relays.js";

// --- connecting ---

test("a document announces its id and that its channel is protected", () => {
  const [attach] = startRelay().attached;
  assert.equal(attach.type, "attach");
  assert.match(attach.documentId, /^[0-9a-f]{32}$/);
  assert.deepEqual([attach.calls, attach.plugins, attach.isProtected], [[], [], true]);
});

test("a relay that was injected late announces that its channel is not protected", () => {
  assert.equal(startRelay({ late: true }).attached[0].isProtected, false);
});

test("a second relay does not replace the first", () => {
  const relay = startRelay();
  relay.load();
  assert.equal(relay.worker.ports.length, 1);
});

test("a prerendered document connects when it is shown", () => {
  const { worker, target } = startRelay({ document: { prerendering: true } });
  assert.equal(worker.ports.length, 0);
  target.dispatchEvent(new Event("prerenderingchange"));
  assert.equal(worker.ports.length, 1);
});

test("a prerendered document that called document.open() connects when it is shown", () => {
  const { worker, target, reopen } = startRelay({ document: { prerendering: true } });
  reopen();
  target.dispatchEvent(new Event("prerenderingchange"));
  assert.equal(worker.ports.length, 1);
});

test("a page that never finishes loading counts as complete some time after it was parsed", () => {
  const relay = startRelay({ document: { readyState: "interactive" } });
  assert.equal(relay.attached[0].complete, false);
  relay.timers[0]?.run();
  assert.deepEqual(relay.drain(), [{ type: "complete" }]);
});

test("a document whose worker died reconnects and lists its calls", () => {
  const relay = startCall();
  const before = relay.documentId();
  relay.worker.die();
  const [attach] = relay.drain();
  assert.deepEqual([attach.documentId, attach.calls], [before, [CALL]]);
});

test("a relay pauses between connections to a worker that dies again and again", () => {
  const relay = startRelay();
  for (let i = 0; i < 3; i++) relay.worker.die(); // it has said nothing
  assert.equal(relay.worker.ports.length, 4);
  relay.worker.die();
  assert.equal(relay.worker.ports.length, 4);
  relay.elapse();
  assert.equal(relay.worker.ports.length, 5);
});

test("a relay that reconnects names the load of the extension that answered it", () => {
  const relay = startRelay();
  assert.equal(relay.attached[0].loadId, null);
  relay.resend(1e6, 1, "first");
  relay.worker.die();
  assert.equal(relay.drain().find(({ type }) => type === "attach").loadId, "first");
});

test("a relay whose extension is gone does not reconnect", () => {
  const relay = startRelay();
  relay.worker.chrome.runtime.id = /** @type {any} */ (undefined);
  relay.worker.die();
  assert.equal(relay.worker.ports.length, 1);
});

test("a relay whose extension was reloaded ends its calls and drops its plugins when the next relay starts", () => {
  const relay = startCall();
  relay.adopt("one");
  relay.adopt("two");
  const another = () => relay.target.dispatchEvent(new Event("opentabs:offer"));
  another();
  assert.deepEqual([relay.page.ofKind("tool.cancel"), relay.page.ofKind("drop")], [[], []]);
  relay.worker.chrome.runtime.id = /** @type {any} */ (undefined);
  another();
  another();
  assert.deepEqual(relay.page.ofKind("tool.cancel"), [`${CALL}the extension was reloaded`]);
  assert.deepEqual(relay.page.ofKind("drop"), ["one", "two"]);
});

test("a document restored from the back/forward cache has a new id, and its running tools are cancelled", () => {
  const relay = startCall();
  const before = relay.documentId();
  relay.fire("pageshow", { persisted: true });
  const [attach] = relay.drain();
  assert.notEqual(attach.documentId, before);
  assert.deepEqual(attach.calls, []);
  assert.equal(relay.page.ofKind("tool.cancel").length, 1);
});

test("a document restored from the back/forward cache ignores the late closing of its old Port", () => {
  const relay = startRelay();
  const [old] = relay.worker.ports;
  relay.fire("pageshow", { persisted: true });
  for (const listener of old?.onGone ?? []) listener();
  assert.equal(relay.worker.ports.length, 2);
});

// --- calls ---

test("a dispatch is forwarded to the page unchanged", () => {
  const relay = startCall({ input: { n: 1 } });
  const [text] = relay.page.ofKind("tool.dispatch");
  assert.deepEqual(JSON.parse(String(text)).params.input, { n: 1 });
});

test("a call that is dispatched twice starts once", () => {
  const relay = startCall();
  relay.dispatch();
  assert.equal(relay.page.ofKind("tool.dispatch").length, 1);
});

test("a result is sent with its document, its call and the next sequence number", () => {
  const relay = startCall();
  relay.report({ progress: 1 });
  relay.drain();
  relay.result({ rows: 3 });
  const [{ method, params }] = relay.drain();
  const { documentId, callId, seq, value } = params;
  assert.equal(method, "tool.result");
  assert.deepEqual([documentId, callId, seq, value], [relay.documentId(), CALL, 1, { rows: 3 }]);
});

test("a second result of a call is dropped", () => {
  const relay = startCall();
  relay.result("first");
  relay.result("second");
  assert.deepEqual(
    relay.drain().map(({ params }) => params.value),
    ["first"],
  );
});

test("an error is sent with all its fields", () => {
  const relay = startCall();
  relay.page.say("tool.error", `${CALL}{"code":"NOPE","message":"No.","retryable":true}`);
  const [{ method, params }] = relay.drain();
  assert.equal(method, "tool.error");
  assert.deepEqual(params.error, { code: "NOPE", message: "No.", retryable: true });
});

test("the page is notified of a cancelled call, which is then forgotten", () => {
  const relay = startCall();
  relay.server("tool.cancel", { reason: "idle" });
  assert.deepEqual(relay.page.ofKind("tool.cancel"), [`${CALL}idle`]);
  relay.report({ progress: 1 });
  relay.result("too late");
  relay.resend();
  assert.deepEqual(relay.drain(), []);
});

test("how the tool of a cancelled call ended is sent to the server, once", () => {
  const relay = startCall();
  const says = (/** @type {object} */ how) =>
    relay.page.say("tool.stopped", `${CALL}${JSON.stringify(how)}`);
  says({ started: true, stack: "before its call was cancelled" });
  relay.server("tool.cancel", { reason: "idle" });
  says({ started: true, stack: `\ud800${"x".repeat(9000)}` });
  says({ started: true });
  const documentId = relay.documentId();
  const stack = `\ufffd${"x".repeat(7999)}`;
  assert.deepEqual(
    relay.drain().map(({ method, params }) => [method, params]),
    [["tool.stopped", { documentId, callId: CALL, started: true, stack }]],
  );
});

test("nothing more is sent about a call that was cancelled after its end", () => {
  const relay = startCall();
  relay.result("done");
  relay.server("tool.cancel", { reason: "nobody waits" });
  relay.drain();
  relay.page.say("tool.stopped", `${CALL}{"started":true}`);
  assert.deepEqual(relay.drain(), []);
});

test("a settled call is forgotten", () => {
  const relay = startCall();
  relay.result("done");
  relay.settle();
  relay.drain();
  relay.resend();
  assert.deepEqual(relay.drain(), []);
});

test("a call to a page where no script can run fails at once with PAGE_UNREACHABLE", () => {
  const relay = startRelay({ runtime: false });
  relay.dispatch();
  const [, { method, params }] = relay.drain();
  assert.deepEqual([method, params.error.code], ["tool.error", "PAGE_UNREACHABLE"]);
});

test("resent messages follow a marker with the epoch of their link", () => {
  const relay = startCall();
  relay.report({ progress: 1 });
  relay.drain();
  relay.resend(undefined, 7);
  const sent = relay.worker.drain();
  assert.deepEqual(sent[0], { type: "resending", epoch: 7 });
  assert.match(sent[1], /tool\.progress/);
});

test("a tool starts once the worker says so", () => {
  const relay = startRelay();
  relay.hold();
  assert.deepEqual(relay.drain(), [{ type: "received", callId: CALL }]);
  assert.deepEqual(relay.page.ofKind("tool.dispatch"), []);
  relay.start();
  relay.start();
  assert.equal(relay.page.ofKind("tool.dispatch").length, 1);
});

test("a call that is cancelled before it starts never starts", () => {
  const relay = startRelay();
  relay.hold();
  relay.server("tool.cancel", { reason: "idle" });
  relay.start();
  assert.deepEqual(relay.page.ofKind("tool.dispatch"), []);
});

test("a call that has not started when the worker dies starts when it is sent again", () => {
  const relay = startRelay();
  relay.hold();
  relay.worker.die();
  const attach = relay.drain().find(({ type }) => type === "attach");
  assert.deepEqual(attach.calls, []);
  relay.resend();
  relay.start(); // by nobody who has sent it on this link
  assert.deepEqual(relay.page.ofKind("tool.dispatch"), []);
  relay.dispatch();
  assert.equal(relay.page.ofKind("tool.dispatch").length, 1);
});

test("a dispatch in parts is joined, and the worker is notified of its call", () => {
  const relay = startRelay();
  const params = { callId: CALL, plugin: "demo", tool: "t", input: { text: "x".repeat(MEBI) } };
  const text = JSON.stringify({ jsonrpc: "2.0", method: "tool.dispatch", params });
  const head = `~${relay.documentId()}00000001`;
  relay.worker.say(`${head}+${text.slice(0, 700_000)}`);
  assert.deepEqual(relay.drain(), []);
  relay.worker.say(`${head}.${text.slice(700_000)}`);
  assert.deepEqual(relay.drain(), [{ type: "received", callId: CALL }]);
  relay.start();
  assert.deepEqual(relay.page.ofKind("tool.dispatch"), [text]);
});

test("parts of a dispatch on a lost link are not joined with parts on the next link", () => {
  const relay = startRelay();
  const params = { callId: CALL, plugin: "demo", tool: "t", input: {} };
  const text = JSON.stringify({ jsonrpc: "2.0", method: "tool.dispatch", params });
  const head = `~${relay.documentId()}00000001`;
  relay.worker.say(`${head}+${text.slice(0, 10)}`);
  relay.resend();
  relay.worker.say(`${head}+${text.slice(0, 10)}`);
  relay.worker.say(`${head}.${text.slice(10)}`);
  relay.start();
  assert.deepEqual(relay.page.ofKind("tool.dispatch"), [text]);
});

test("the start of a traced call is reported before its tool answers", () => {
  const relay = startCall({ trace: true });
  relay.page.say("tool.stamps", `${CALL}{"runtime.down":1}`);
  const [{ type, callId, stamps }] = relay.drain();
  assert.deepEqual([type, callId], ["began", CALL]);
  assert.deepEqual(Object.keys(stamps), ["relay.down", "runtime.down"]);
});

test("the result of a traced call carries the times at the relay and the runtime", () => {
  const relay = startCall({ trace: true });
  relay.page.say("tool.stamps", `${CALL}{"runtime.down":1}`);
  relay.drain();
  relay.page.say("tool.stamps", `${CALL}{"runtime.up":2}`);
  relay.result(1);
  const [{ type, callId, frame }] = relay.drain();
  const { stamps } = JSON.parse(frame).params;
  assert.deepEqual([type, callId], ["traced", CALL]);
  assert.deepEqual(Object.keys(stamps), ["relay.down", "runtime.down", "runtime.up", "relay.up"]);
});

// --- the channel ---

test("a message that is not on the channel's node is ignored", () => {
  const relay = startCall();
  const detail = `tool.result ${CALL}"FORGED"`;
  for (const name of ["up", "down", "opentabs:offer"]) {
    relay.target.dispatchEvent(new CustomEvent(name, { detail, cancelable: true }));
  }
  relay.result("real");
  assert.deepEqual(seqs(relay.drain()), ["tool.result"]);
});

test("the frame that provides the runtime's builtins is removed when the relay starts", () => {
  assert.ok(!startRelay().frame.isThere);
  assert.ok(!startRelay({ runtime: false }).frame.isThere);
});

for (const late of [false, true]) {
  test(`a relay that started ${late ? "late" : "in time"} offers no node to a page that claims to be ready`, () => {
    const relay = startRelay({ late });
    let offers = 0;
    relay.target.addEventListener("opentabs:offer", () => offers++);
    relay.target.dispatchEvent(new CustomEvent("opentabs:ready"));
    assert.equal(offers, 0);
  });
}

test("a runtime without a realm of its own is offered the node, and its channel is not protected", () => {
  const relay = startRelay({ runtime: false });
  const heard = [];
  relay.target.addEventListener("opentabs:offer", (/** @type {any} */ event) => {
    heard.push(channelEnd(event.relatedTarget, { hears: "down", says: "up" }).heard);
  });
  relay.target.dispatchEvent(new CustomEvent("opentabs:ready"));
  assert.equal(relay.attached[0].isProtected, false);
  assert.equal(heard.length, 1);
});

test("forged events of the back/forward cache end no call", () => {
  const relay = startCall();
  relay.fire("pageshow", { persisted: true, isTrusted: false });
  relay.fire("pagehide", { persisted: true, isTrusted: false });
  relay.result("real");
  assert.deepEqual(seqs(relay.drain()), ["tool.result"]);
});

test("messages of a page that called document.open() still arrive", () => {
  const relay = startLogs();
  relay.reopen();
  relay.log({ message: "heard" });
  assert.deepEqual(
    relay.drain().map(({ params }) => params.entries[0].message),
    ["heard"],
  );
});

for (const readyState of ["loading", "interactive"]) {
  test(`a page that called document.open() while ${readyState} is complete when it has loaded`, () => {
    const relay = startRelay({ document: { readyState } });
    relay.reopen();
    relay.complete();
    assert.deepEqual(relay.drain(), [{ type: "complete" }]);
  });
}

test("a page that called document.open() while loading is complete some time after it was parsed", () => {
  const relay = startRelay({ document: { readyState: "loading" } });
  relay.reopen();
  relay.fire("DOMContentLoaded");
  assert.equal(relay.timers.length, 1);
  relay.elapse();
  assert.deepEqual(relay.drain(), [{ type: "complete" }]);
});
