import assert from "node:assert/strict";
import { test } from "node:test";
import { ToolError } from "../../sdk/errors.js";
import { retry, sleep, waitUntil } from "../../sdk/timing.js";
import { fakeTimers, listeners, stateOf } from "./fakes.js";

const REASON = new Error("cancelled");

// --- sleep ---

test("sleep ends when its time has passed, and not earlier", async (t) => {
  const timers = fakeTimers(t);
  const asleep = sleep(1000);
  await timers.advance(999);
  assert.equal((await stateOf(asleep)).state, "pending");
  await timers.advance(1);
  assert.deepEqual(await stateOf(asleep), { state: "fulfilled", value: undefined });
});

test("sleep can wait longer than one timer can", async (t) => {
  const timers = fakeTimers(t);
  const most = 2 ** 31 - 1; // a longer timer would fire after 1 ms
  const asleep = sleep(2 * most + 5);
  for (const left of [most, most, 5]) {
    await timers.advance(0);
    assert.deepEqual(timers.left(), [left]);
    assert.equal((await stateOf(asleep)).state, "pending");
    await timers.advance(left);
  }
  assert.equal((await stateOf(asleep)).state, "fulfilled");
});

test("a signal stops a long sleep during a later timer", async (t) => {
  const timers = fakeTimers(t);
  const controller = new AbortController();
  const asleep = sleep(2 ** 32, { signal: controller.signal });
  asleep.catch(() => {});
  await timers.advance(2 ** 31);
  controller.abort(REASON);
  assert.deepEqual(await stateOf(asleep), { state: "rejected", value: REASON });
  assert.equal(timers.count(), 0);
});

test("an infinite sleep waits only for the signal", async (t) => {
  const timers = fakeTimers(t);
  const controller = new AbortController();
  const asleep = sleep(Number.POSITIVE_INFINITY, { signal: controller.signal });
  asleep.catch(() => {});
  await timers.advance(0);
  assert.deepEqual([timers.count(), (await stateOf(asleep)).state], [0, "pending"]);
  controller.abort(REASON);
  assert.deepEqual(await stateOf(asleep), { state: "rejected", value: REASON });
});

test("sleep removes its listener from a signal that was not aborted", async (t) => {
  const timers = fakeTimers(t);
  const { signal } = new AbortController();
  const asleep = sleep(1000, { signal });
  assert.equal(listeners(signal), 1);
  await timers.advance(1000);
  await asleep;
  assert.equal(listeners(signal), 0);
});

// --- signals ---

/** @type {Record<string, (signal: AbortSignal) => Promise<unknown>>} */
const WAITS = {
  sleep: (signal) => sleep(1000, { signal }),
  "waitUntil between two checks": (signal) => waitUntil(() => false, { signal }),
  "waitUntil during a check": (signal) => waitUntil(() => new Promise(() => {}), { signal }),
  "retry between two attempts": (signal) =>
    retry(() => Promise.reject(new Error("no")), { signal, maxAttempts: 9 }),
  "retry during an attempt": (signal) => retry(() => new Promise(() => {}), { signal }),
};

for (const [name, wait] of Object.entries(WAITS)) {
  test(`${name} rejects with the signal's reason at once, and cleans up`, async (t) => {
    const timers = fakeTimers(t);
    const controller = new AbortController();
    const waiting = wait(controller.signal);
    assert.equal((await stateOf(waiting)).state, "pending");
    controller.abort(REASON);
    assert.deepEqual(await stateOf(waiting), { state: "rejected", value: REASON });
    assert.equal(timers.count(), 0);
    assert.equal(listeners(controller.signal), 0);
  });

  test(`${name} does not start if the signal is aborted`, async (t) => {
    const timers = fakeTimers(t);
    const waiting = wait(AbortSignal.abort(REASON));
    assert.deepEqual(await stateOf(waiting), { state: "rejected", value: REASON });
    assert.equal(timers.count(), 0);
  });
}

test("retry and waitUntil do not call their function if the signal is aborted", async () => {
  const calls = countCalls();
  const signal = AbortSignal.abort(REASON);
  await assert.rejects(waitUntil(calls.add, { signal }), REASON);
  await assert.rejects(retry(calls.add, { signal }), REASON);
  assert.equal(calls.count, 0);
});

function countCalls() {
  const calls = { count: 0, add: () => ++calls.count };
  return calls;
}

test("a function that aborts its own signal does not run again", async (t) => {
  const timers = fakeTimers(t);
  for (const wait of [waitUntil, retry]) {
    const controller = new AbortController();
    const calls = countCalls();
    const stop = () => {
      calls.add();
      controller.abort(REASON);
      return new Promise(() => {});
    };
    await assert.rejects(wait(stop, { signal: controller.signal }), REASON);
    assert.deepEqual([calls.count, timers.count(), listeners(controller.signal)], [1, 0, 0]);
  }
});

// --- waitUntil ---

test("waitUntil checks at once, and needs no timer if the condition holds", async (t) => {
  const timers = fakeTimers(t);
  const waiting = waitUntil(() => true);
  assert.deepEqual(await stateOf(waiting), { state: "fulfilled", value: undefined });
  assert.equal(timers.count(), 0);
});

for (const [kind, make] of /** @type {[string, (value: boolean) => unknown][]} */ ([
  ["a sync", (value) => value],
  ["an async", async (value) => value],
])) {
  test(`waitUntil calls ${kind} predicate at each interval until it holds`, async (t) => {
    const timers = fakeTimers(t);
    let looks = 0;
    const waiting = waitUntil(() => make(++looks === 3), { interval: 50 });
    await timers.advance(99);
    assert.deepEqual([looks, (await stateOf(waiting)).state], [2, "pending"]);
    await timers.advance(1);
    assert.deepEqual([looks, (await stateOf(waiting)).state], [3, "fulfilled"]);
    assert.equal(timers.count(), 0);
  });
}

for (const [kind, predicate] of /** @type {[string, () => unknown][]} */ ([
  ["does not hold", () => false],
  ["never settles", () => new Promise(() => {})],
])) {
  test(`waitUntil throws TIMEOUT if its condition ${kind}`, async (t) => {
    const timers = fakeTimers(t);
    const waiting = waitUntil(predicate, { timeout: 1000 });
    waiting.catch(() => {});
    await timers.advance(999);
    assert.equal((await stateOf(waiting)).state, "pending");
    await timers.advance(1);
    const { value } = await stateOf(waiting);
    assert.deepEqual([value.code, value.retryable], ["TIMEOUT", true]);
    assert.match(value.message, /1000 ms/);
    assert.equal(timers.count(), 0);
  });
}

test("waitUntil checks every 200 ms for 10 s by default", async (t) => {
  const timers = fakeTimers(t);
  waitUntil(() => false).catch(() => {});
  await timers.advance(0);
  assert.deepEqual(timers.left(), [10_000, 200]);
});

test("waitUntil without a timeout sets no timer for it", async (t) => {
  const timers = fakeTimers(t);
  waitUntil(() => false, { timeout: Number.POSITIVE_INFINITY, interval: 7 }).catch(() => {});
  await timers.advance(0);
  assert.deepEqual(timers.left(), [7]);
});

for (const [kind, predicate] of /** @type {[string, () => unknown][]} */ ([
  [
    "throws",
    () => {
      throw REASON;
    },
  ],
  ["rejects", () => Promise.reject(REASON)],
])) {
  test(`waitUntil rejects with the same error if its predicate ${kind}`, async (t) => {
    const timers = fakeTimers(t);
    await assert.rejects(waitUntil(predicate), REASON);
    assert.equal(timers.count(), 0);
  });
}

// --- retry ---

/**
 * Fails with each of some errors, then returns the number of the attempt.
 * @param {unknown[]} errors
 */
function failing(...errors) {
  /** @type {number[]} */
  const attempts = [];
  const run = async (/** @type {number} */ attempt) => {
    attempts.push(attempt);
    if (attempts.length <= errors.length) {
      throw errors[attempts.length - 1];
    }
    return attempt;
  };
  return { attempts, run };
}

const NO = new Error("no");

test("retry returns the value of the first successful attempt, and numbers attempts from 1", async (t) => {
  const timers = fakeTimers(t);
  const { attempts, run } = failing(NO, NO);
  const trying = retry(run);
  await timers.advance(1000 + 2000);
  assert.deepEqual(await stateOf(trying), { state: "fulfilled", value: 3 });
  assert.deepEqual(attempts, [1, 2, 3]);
});

test("retry throws the last error after the last attempt, three by default", async (t) => {
  const timers = fakeTimers(t);
  const last = new Error("last");
  const { attempts, run } = failing(NO, NO, last, NO);
  const trying = retry(run);
  trying.catch(() => {});
  await timers.advance(60_000);
  assert.deepEqual(await stateOf(trying), { state: "rejected", value: last });
  assert.equal(attempts.length, 3);
});

test("retry retries a function that throws synchronously", async (t) => {
  const timers = fakeTimers(t);
  let attempts = 0;
  const trying = retry(() => {
    if (++attempts === 1) throw NO;
    return "done";
  });
  await timers.advance(1000);
  assert.deepEqual(await stateOf(trying), { state: "fulfilled", value: "done" });
});

for (const [options, delays] of /** @type {[object, number[]][]} */ ([
  [{}, [1000, 2000, 4000]],
  [{ delay: 10, backoff: 3 }, [10, 30, 90]],
  [{ delay: 10, backoff: true }, [10, 20, 40]],
  [{ delay: 10, backoff: false }, [10, 10, 10]],
  [{ delay: 10, maxDelay: 25 }, [10, 20, 25]],
])) {
  test(`retry with ${JSON.stringify(options)} waits ${delays} ms`, async (t) => {
    const timers = fakeTimers(t);
    retry(() => Promise.reject(NO), { maxAttempts: 4, ...options }).catch(() => {});
    for (const delay of delays) {
      await timers.advance(0);
      assert.deepEqual(timers.left(), [delay]);
      await timers.advance(delay);
    }
    assert.equal(timers.count(), 0);
  });
}

test("retry waits for the retryAfterMs of the error", async (t) => {
  const timers = fakeTimers(t);
  const { attempts, run } = failing(ToolError.rateLimited("later", 7000));
  retry(run);
  await timers.advance(6999);
  assert.equal(attempts.length, 1);
  await timers.advance(1);
  assert.equal(attempts.length, 2);
});

test("retry throws an error whose retryAfterMs exceeds maxDelay", async (t) => {
  const timers = fakeTimers(t);
  const later = ToolError.rateLimited("later", 30_001);
  const { attempts, run } = failing(later);
  await assert.rejects(retry(run), later);
  assert.deepEqual([attempts.length, timers.count()], [1, 0]);
});

for (const retryAfterMs of [Number.NaN, -1, "soon"]) {
  test(`retry ignores a retryAfterMs of ${retryAfterMs}`, async (t) => {
    const timers = fakeTimers(t);
    const { attempts, run } = failing(Object.assign(new Error("later"), { retryAfterMs }));
    retry(run);
    await timers.advance(999);
    assert.equal(attempts.length, 1);
    await timers.advance(1);
    assert.equal(attempts.length, 2);
  });
}

test("retry throws an error whose retryAfterMs is infinite", async (t) => {
  const timers = fakeTimers(t);
  const never = ToolError.rateLimited("never", Number.POSITIVE_INFINITY);
  const { attempts, run } = failing(never);
  await assert.rejects(retry(run), never);
  assert.deepEqual([attempts.length, timers.count()], [1, 0]);
});

test("retry can wait longer than one timer can, if maxDelay allows it", async (t) => {
  const timers = fakeTimers(t);
  const { attempts, run } = failing(ToolError.rateLimited("later", 2 ** 31));
  retry(run, { maxDelay: Number.POSITIVE_INFINITY });
  await timers.advance(0);
  assert.deepEqual(timers.left(), [2 ** 31 - 1]);
  await timers.advance(2 ** 31 - 1);
  assert.equal(attempts.length, 1);
  await timers.advance(1);
  assert.equal(attempts.length, 2);
});

test("retry throws an error that is not retryable", async (t) => {
  fakeTimers(t);
  const { attempts, run } = failing(ToolError.notFound("gone"));
  await assert.rejects(retry(run), { code: "NOT_FOUND" });
  assert.equal(attempts.length, 1);
});

test("shouldRetry decides with the error and the attempt, instead of `retryable`", async (t) => {
  const timers = fakeTimers(t);
  const gone = ToolError.notFound("gone");
  /** @type {unknown[]} */
  const asked = [];
  const { run } = failing(gone, NO);
  const trying = retry(run, {
    shouldRetry(error, attempt) {
      asked.push([error, attempt]);
      return error === gone;
    },
  });
  trying.catch(() => {});
  await timers.advance(1000);
  assert.deepEqual(await stateOf(trying), { state: "rejected", value: NO });
  assert.deepEqual(asked, [
    [gone, 1],
    [NO, 2],
  ]);
});

for (const thrown of [null, undefined, "text"]) {
  test(`retry retries after ${thrown} was thrown`, async (t) => {
    const timers = fakeTimers(t);
    const trying = retry(failing(thrown).run);
    await timers.advance(1000);
    assert.deepEqual(await stateOf(trying), { state: "fulfilled", value: 2 });
  });
}

// --- stacks ---

test("a reason that a tool catches again and again does not grow with each wait", async () => {
  const reason = new DOMException("Cancelled.", "AbortError");
  const signal = AbortSignal.abort(reason);
  const lengths = [];
  for (let i = 0; i < 100; i++) {
    await sleep(1, { signal }).catch(() => {});
    lengths.push(reason.stack?.length);
  }
  assert.ok(Number(lengths[1]) > Number(lengths[0]));
  assert.equal(lengths.at(-1), lengths.at(-20));
});

const forEver = () => new Promise(() => {});
/** @type {Record<string, [(signal: AbortSignal) => Promise<void>, string[]]>} with the async frames */
const waits = {
  sleep: [(signal) => sleep(60_000, { signal }), ["sleep", "tool"]],
  waitUntil: [(signal) => waitUntil(forEver, { signal }), ["waitUntil", "tool"]],
  "a wait within another": [
    (signal) =>
      retry(
        async function inner() {
          await sleep(60_000, { signal });
        },
        { signal },
      ),
    ["sleep", "inner", "retry", "tool"],
  ],
  "a wait whose time is up": [
    () => waitUntil(() => false, { timeout: 1, interval: 60_000 }),
    ["sleep", "waitUntil", "tool"],
  ],
};

for (const [name, [wait, frames]] of Object.entries(waits)) {
  test(`the error that ends ${name} says where the tool waited`, async () => {
    const cancelled = new AbortController();
    async function tool() {
      await wait(cancelled.signal);
    }
    const ended = tool().catch((error) => error);
    setTimeout(() => cancelled.abort(new DOMException("Cancelled.", "AbortError")), 5);
    const { message, stack } = await ended;
    assert.ok(stack.includes(`: ${message}\n    at unlessAborted `));
    const found = [...stack.matchAll(/^ {4}at async (\w+) /gm)].map(([, at]) => at);
    assert.deepEqual(found, frames);
  });
}
