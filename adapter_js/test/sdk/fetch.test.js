// With a real server on this machine.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { z } from "zod";
import * as sdk from "../../sdk/fetch.js";
import { fakeTimers, listeners, stateOf, withGlobals } from "./fakes.js";

/** @import { IncomingMessage, ServerResponse } from "node:http" */

/** @typedef {(request: IncomingMessage & {text: string}, response: ServerResponse) => void} Answer */

/** @type {Map<string, Answer>} by path */
const answers = new Map();
const server = createServer(async (request, response) => {
  const parts = await request.toArray();
  const text = Buffer.concat(parts).toString();
  const answer = /** @type {Answer} */ (answers.get(request.url?.split("?")[0] ?? ""));
  answer(Object.assign(request, { text }), response);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
const origin = `http://127.0.0.1:${port}`;
after(() => {
  server.close();
  server.closeAllConnections();
});

let paths = 0;
/**
 * @param {Answer} answer
 * @returns {string} the URL that has it
 */
function serve(answer) {
  const path = `/${++paths}`;
  answers.set(path, answer);
  return origin + path;
}

/**
 * @param {number} status
 * @param {string} [body]
 * @param {Record<string, string>} [headers]
 */
function serveText(status, body, headers = {}) {
  return serve((_, response) => response.writeHead(status, headers).end(body));
}

/** A URL whose response describes the request. */
function serveEcho() {
  return serve(({ method, headers, text }, response) => {
    response.end(JSON.stringify({ method, type: headers["content-type"] ?? null, text }));
  });
}

/** A URL that never responds, and a promise of the first request for it. */
function serveSilence() {
  /** @type {() => void} */
  let take;
  const asked = new Promise((resolve) => {
    take = () => resolve(undefined);
  });
  return { url: serve(() => take()), asked };
}

/**
 * Fake timers for the limits of these tests; `fetch` uses timers of its own.
 * @param {import("node:test").TestContext} t
 */
function fakeLimits(t) {
  return fakeTimers(t, (ms) => [30_000, 54, 55].includes(ms));
}

const REASON = new Error("cancelled");

// --- all functions ---

/** @type {Record<string, (url: string, init?: import("../../sdk/exchange.js").FetchFromPageInit) => Promise<unknown>>} */
const ALL = {
  fetchFromPage: sdk.fetchFromPage,
  fetchText: sdk.fetchText,
  fetchJSON: sdk.fetchJSON,
  deleteJSON: sdk.deleteJSON,
  postJSON: (url, init) => sdk.postJSON(url, {}, init),
  putJSON: (url, init) => sdk.putJSON(url, {}, init),
  patchJSON: (url, init) => sdk.patchJSON(url, {}, init),
  postForm: (url, init) => sdk.postForm(url, {}, init),
  postFormData: (url, init) => sdk.postFormData(url, new FormData(), init),
};

for (const [name, send] of Object.entries(ALL)) {
  test(`${name} sends cookies and headers`, async (t) => {
    /** @type {unknown[]} */
    const inits = [];
    withGlobals(t, {
      fetch: async (/** @type {string} */ _, /** @type {RequestInit} */ init) => {
        inits.push([init.credentials, new Headers(init.headers).get("x-csrf")]);
        return new Response("1");
      },
    });
    await send("/relative", { headers: { "x-csrf": "t" } });
    await send("/relative", { headers: [["x-csrf", "t"]], credentials: "omit" });
    assert.deepEqual(inits, [
      ["include", "t"],
      ["omit", "t"],
    ]);
  });

  test(`${name} rejects with the error for the status`, async () => {
    const url = serveText(404, "No such\n  channel", { "content-type": "text/plain" });
    await assert.rejects(send(`${url}?secret=1#part`), (/** @type {any} */ error) => {
      assert.deepEqual([error.name, error.code], ["ToolError", "NOT_FOUND"]);
      assert.match(error.message, /^[A-Z]+ http\S+ answered 404 Not Found: No such channel$/);
      assert.doesNotMatch(error.message, /secret|part/);
      return true;
    });
  });

  test(`${name} rejects with TIMEOUT after 30 s without a response`, async (t) => {
    const timers = fakeLimits(t);
    const { url, asked } = serveSilence();
    const sent = send(url);
    sent.catch(() => {});
    await asked;
    assert.deepEqual(timers.left(), [30_000]);
    await timers.advance(30_000);
    await assert.rejects(sent, { code: "TIMEOUT", retryable: true, message: /30000 ms/ });
  });

  test(`${name} rejects with the signal's reason, and cleans up`, async (t) => {
    const timers = fakeLimits(t);
    const { url, asked } = serveSilence();
    const controller = new AbortController();
    const sent = send(url, { signal: controller.signal });
    sent.catch(() => {});
    await asked;
    controller.abort(REASON);
    await assert.rejects(sent, REASON);
    assert.deepEqual([timers.count(), listeners(controller.signal)], [0, 0]);
  });

  test(`${name} sends no request if its signal is aborted`, async () => {
    let asked = false;
    const url = serve((_, response) => {
      asked = true;
      response.end();
    });
    await assert.rejects(send(url, { signal: AbortSignal.abort(REASON) }), REASON);
    assert.equal(asked, false);
  });

  test(`${name} names the site that it could not reach, with a retryable error`, async () => {
    const url = serve(({ socket }) => socket.destroy());
    await assert.rejects(send(url), (/** @type {any} */ error) => {
      assert.deepEqual(
        [error.code, error.category, error.retryable],
        ["INTERNAL_ERROR", "internal", true],
      );
      assert.ok(error.message.includes(url));
      assert.ok(error.cause instanceof TypeError);
      return true;
    });
  });
}

// --- fetchFromPage ---

test("fetchFromPage returns the response, and its timeout ends with the headers", async (t) => {
  const timers = fakeLimits(t);
  const url = serveText(201, "body", { "x-a": "1" });
  const response = await sdk.fetchFromPage(new URL(url), { timeout: 54 });
  assert.equal(timers.count(), 0);
  assert.deepEqual([response.status, response.headers.get("x-a")], [201, "1"]);
  assert.equal(await response.text(), "body");
});

test("the signal of fetchFromPage aborts the body of its response", async () => {
  const controller = new AbortController();
  const url = serve((_, response) => response.write("begin"));
  const response = await sdk.fetchFromPage(url, { signal: controller.signal });
  const text = response.text();
  controller.abort(REASON);
  await assert.rejects(text, REASON);
});

test("the timeout of fetchText includes the body", async (t) => {
  const timers = fakeLimits(t);
  /** @type {() => void} */
  let begun = () => {};
  const headersSent = new Promise((resolve) => {
    begun = () => resolve(undefined);
  });
  const url = serve((_, response) => response.write("begin", begun));
  const sent = sdk.fetchText(url, { timeout: 55 });
  sent.catch(() => {});
  await headersSent;
  await timers.advance(55);
  await assert.rejects(sent, { code: "TIMEOUT" });
});

test("a request without a timeout sets no timer", async (t) => {
  const timers = fakeTimers(t, (ms) => ms > 10_000 || ms <= 1);
  const { url, asked } = serveSilence();
  const controller = new AbortController();
  const init = { timeout: Number.POSITIVE_INFINITY, signal: controller.signal };
  const sent = sdk.fetchFromPage(url, init);
  sent.catch(() => {});
  await asked;
  assert.deepEqual([timers.left(), (await stateOf(sent)).state], [[], "pending"]);
  controller.abort(REASON);
});

test("an error quotes 300 characters of the body and does not read the rest", async () => {
  /** @type {() => void} */
  let closed = () => {};
  const stopped = new Promise((resolve) => {
    closed = () => resolve(undefined);
  });
  const url = serve((request, response) => {
    request.socket.on("close", closed);
    response.writeHead(500);
    response.write("x".repeat(100_000)); // and never ends
  });
  await assert.rejects(sdk.fetchText(url), (/** @type {any} */ error) => {
    assert.equal(error.message.split(": ").at(-1), "x".repeat(300));
    return true;
  });
  await stopped;
});

test("a body that ends early does not hide the status", async () => {
  const url = serve((_, response) => {
    response.writeHead(500, { "content-length": "1000" });
    response.write("begin", () => response.destroy());
  });
  await assert.rejects(sdk.fetchText(url), { message: /answered 500 Internal Server Error/ });
});

test("the message of an error without a body ends with the status", async () => {
  await assert.rejects(sdk.fetchText(serveText(403)), { message: /answered 403 Forbidden$/ });
});

test("an error keeps the Retry-After header", async () => {
  const url = serveText(429, "", { "retry-after": "3" });
  await assert.rejects(sdk.fetchText(url), { code: "RATE_LIMITED", retryAfterMs: 3000 });
});

// --- text and JSON ---

test("fetchText returns the text unchanged", async () => {
  assert.equal(await sdk.fetchText(serveText(200, " a\n")), " a\n");
});

test("fetchJSON returns the parsed value", async () => {
  assert.deepEqual(await sdk.fetchJSON(serveText(200, '{"a": [1, null]}')), { a: [1, null] });
});

for (const [what, status, body] of /** @type {[string, number, string?][]} */ ([
  ["204", 204],
  ["an empty body", 200, ""],
  ["only whitespace", 200, " \n"],
])) {
  test(`fetchJSON returns undefined for ${what}`, async () => {
    assert.equal(await sdk.fetchJSON(serveText(status, body)), undefined);
  });
}

test("a response that is not JSON is an error with its content type and its first characters", async () => {
  const url = serveText(200, `<html>${"x".repeat(1000)}`, { "content-type": "text/html" });
  await assert.rejects(sdk.fetchJSON(url), (/** @type {any} */ error) => {
    assert.deepEqual(
      [error.code, error.category, error.retryable],
      ["UNEXPECTED_RESPONSE", "internal", false],
    );
    assert.match(error.message, /not JSON but text\/html, starting with: <html>x{294}$/);
    return true;
  });
  await assert.rejects(sdk.fetchJSON(serveText(200, "{")), /not JSON but no content-type/);
});

const Message = z.object({ text: z.string(), author: z.string().default("nobody") });

test("each function returns the value that the schema parsed", async () => {
  const url = serveText(200, '{"text": "a"}');
  const expected = { text: "a", author: "nobody" };
  assert.deepEqual(await sdk.fetchJSON(url, {}, Message), expected);
  assert.deepEqual(await sdk.deleteJSON(url, undefined, Message), expected);
  assert.deepEqual(await sdk.postJSON(url, 1, undefined, Message), expected);
  assert.deepEqual(await sdk.putJSON(url, 1, undefined, Message), expected);
  assert.deepEqual(await sdk.patchJSON(url, 1, undefined, Message), expected);
  assert.deepEqual(await sdk.postForm(url, {}, undefined, Message), expected);
  assert.deepEqual(await sdk.postFormData(url, new FormData(), undefined, Message), expected);
});

test("a response that violates its schema is an error with the paths and reasons", async () => {
  const url = serveText(200, '{"messages": [{"text": "a"}, {"text": 1, "author": 2}]}');
  const schema = z.object({ messages: z.array(Message) });
  await assert.rejects(sdk.fetchJSON(`${url}?token=1`, {}, schema), (/** @type {any} */ error) => {
    assert.deepEqual(
      [error.code, error.category, error.retryable],
      ["UNEXPECTED_RESPONSE", "internal", false],
    );
    assert.match(error.message, /messages\[1\]\.text: .*string.*; messages\[1\]\.author: .*string/);
    assert.ok(error.message.startsWith(`GET ${url} returned`));
    return true;
  });
});

test("a schema decides whether a response may be empty", async () => {
  const url = serveText(204);
  await assert.rejects(sdk.fetchJSON(url, {}, Message), { code: "UNEXPECTED_RESPONSE" });
  assert.equal(await sdk.fetchJSON(url, {}, Message.optional()), undefined);
});

test("a schema may be async, or have only parse()", async () => {
  const url = serveText(200, "1");
  const odd = z.number().refine(async (value) => value % 2 === 1);
  assert.equal(await sdk.fetchJSON(url, {}, odd), 1);
  assert.equal(await sdk.fetchJSON(url, {}, { parse: () => "parsed" }), "parsed");
});

test("an error of a schema that is not a validation error is thrown unchanged", async () => {
  const schema = {
    parse() {
      throw REASON;
    },
  };
  await assert.rejects(sdk.fetchJSON(serveText(200, "1"), {}, schema), REASON);
});

// --- with a body ---

for (const [send, method] of /** @type {const} */ ([
  [sdk.postJSON, "POST"],
  [sdk.putJSON, "PUT"],
  [sdk.patchJSON, "PATCH"],
])) {
  test(`${method} sends its body as JSON`, async () => {
    const expected = { method, type: "application/json", text: '{"a":[1]}' };
    assert.deepEqual(await send(serveEcho(), { a: [1] }), expected);
  });
}

test("postJSON keeps a given content type, and sends no body for undefined", async () => {
  const init = { headers: { "Content-Type": "application/vnd.api+json" } };
  const given = /** @type {any} */ (await sdk.postJSON(serveEcho(), 1, init));
  assert.deepEqual([given.type, given.text], ["application/vnd.api+json", "1"]);
  const empty = await sdk.postJSON(serveEcho(), undefined);
  assert.deepEqual(empty, { method: "POST", type: null, text: "" });
});

test("deleteJSON sends a DELETE request without a body", async () => {
  assert.deepEqual(await sdk.deleteJSON(serveEcho()), { method: "DELETE", type: null, text: "" });
});

test("postForm sends its fields URL-encoded", async () => {
  assert.deepEqual(await sdk.postForm(serveEcho(), { q: "a b", tag: ["x", "y"], no: undefined }), {
    method: "POST",
    type: "application/x-www-form-urlencoded;charset=UTF-8",
    text: "q=a+b&tag=x&tag=y",
  });
});

test("postFormData sends its fields and files as multipart", async () => {
  const form = new FormData();
  form.set("name", "value");
  form.set("file", new Blob(["content"]), "a.txt");
  const { type, text } = /** @type {any} */ (await sdk.postFormData(serveEcho(), form));
  assert.match(type, /^multipart\/form-data; boundary=/);
  assert.match(text, /name="name"\r\n\r\nvalue\r\n/);
  assert.match(text, /filename="a.txt".*\r\n\r\ncontent\r\n/s);
});
