/**
 * The state received from the runner: the tests, and the state of their run.
 *
 * @typedef {"idle" | "waiting" | "running" | "paused" | "passed" | "flaky" | "failed" | "skipped" | "xfailed"} TestState
 *
 * @typedef {object} TestRow
 * @property {string} id
 * @property {string} file
 * @property {string} name
 * @property {number} line
 * @property {"pytest" | "node" | "module"} kind
 * @property {number} at its place in the list
 * @property {TestState} state
 * @property {"" | "setup" | "call" | "teardown"} failedIn
 * @property {number} seconds
 * @property {string} why
 * @property {number} attempts
 * @property {number} calls
 * @property {number} faults
 * @property {number | null} pause the number of the pause at its failure
 * @property {number} changes increases whenever anything of it changes
 *
 * @typedef {object} Status
 * @property {"idle" | "building" | "running"} state
 * @property {string} why what began the run
 * @property {number} started in seconds since the epoch
 * @property {number} seconds
 * @property {boolean} watches
 * @property {boolean} pauses
 * @property {boolean} headed
 * @property {boolean} terminal
 * @property {string} directory
 * @property {{place: string, why: string}[]} problems
 * @property {string} error
 * @property {number} lost
 *
 * @typedef {{reset: boolean, changed: any[], gone: string[]}} Changes
 * @typedef {{boot: string, now: number, version: number, tests?: Changes, status?: Changes}} TestUpdate
 */

/** @type {ReadonlySet<TestState>} */
const RUNNING = new Set(/** @type {const} */ (["waiting", "running", "paused"]));

export class TestStore {
  /** @type {Map<string, TestRow>} */
  #tests = new Map();
  /** @type {TestRow[] | null} */
  #ordered = null;
  /** @type {Set<() => void>} */
  #listeners = new Set();
  #ahead = 0; // s; how far the server's clock is ahead of the page's
  /** @type {Status | null} */
  #status = null;
  /** @type {Status | null} */
  #whileGone = null; // the status while there is no connection

  /** The state of the run; while its server is gone, that it has stopped. */
  get status() {
    return this.#whileGone ?? this.#status;
  }

  /** Whether the server was connected and is not any more. */
  get isGone() {
    return this.#whileGone !== null;
  }

  /** The tests in the order in which they are listed. */
  get tests() {
    this.#ordered ??= [...this.#tests.values()]
      .map((test) => this.#now(test))
      .sort((a, b) => a.at - b.at);
    return this.#ordered;
  }

  /** @param {string} id */
  test(id) {
    const test = this.#tests.get(id);
    return test === undefined ? undefined : this.#now(test);
  }

  /**
   * A test as it is now: without its server, it neither runs nor waits for the user.
   * @param {TestRow} test
   * @returns {TestRow}
   */
  #now(test) {
    if (this.#whileGone === null || !runs(test)) return test;
    return { ...test, state: test.state === "paused" ? "failed" : "idle", pause: null };
  }

  /** The server's time, in seconds since the epoch. */
  now() {
    return Date.now() / 1000 + this.#ahead;
  }

  /** @param {() => void} listener */
  subscribe(listener) {
    this.#listeners.add(listener);
  }

  /** Handle the end of the connection. */
  disconnect() {
    if (this.#whileGone !== null || this.#status === null) return;
    const { state, started, seconds } = this.#status;
    const ran = state === "idle" ? seconds : Math.max(0, this.now() - started);
    this.#whileGone = { ...this.#status, state: "idle", seconds: ran };
    this.#ordered = null;
    this.#notify();
  }

  /** @param {TestUpdate} update */
  apply(update) {
    this.#ahead = update.now - Date.now() / 1000;
    if (this.#whileGone !== null) this.#ordered = null;
    this.#whileGone = null;
    const { tests, status } = update;
    if (tests !== undefined) {
      if (tests.reset) this.#tests.clear();
      for (const gone of tests.gone) this.#tests.delete(gone);
      for (const row of tests.changed) this.#tests.set(row.id, row);
      this.#ordered = null;
    }
    if (status !== undefined) this.#status = status.changed.at(-1) ?? this.#status;
    this.#notify();
  }

  #notify() {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        reportError(error); // the other listeners show other parts of the page
      }
    }
  }
}

/** @param {Pick<TestRow, "state">} test */
export function runs(test) {
  return RUNNING.has(test.state);
}

/** @type {Record<TestState, string>} */
const STATE_TEXTS = {
  idle: "not run",
  waiting: "waiting",
  running: "running",
  paused: "failed, its browser is open",
  passed: "passed",
  flaky: "flaky",
  failed: "failed",
  skipped: "skipped",
  xfailed: "failed, as expected",
};

/**
 * Return whether it is not the test itself that has failed, but what is around it.
 * @param {Pick<TestRow, "state" | "kind" | "failedIn">} test
 */
export function isError({ state, kind, failedIn }) {
  return (
    state === "failed" && (kind === "module" || failedIn === "setup" || failedIn === "teardown")
  );
}

/** @param {Pick<TestRow, "state" | "kind" | "failedIn">} test */
export function stateText(test) {
  if (isError(test) && test.kind !== "module") return `failed in its ${test.failedIn}`;
  return STATE_TEXTS[test.state];
}
