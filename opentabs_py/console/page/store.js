/**
 * The state received from the server, and the subscribers to its changes.
 *
 * @typedef {"succeeded" | "failed" | "refused" | "timed_out" | "cancelled" | "lost"} Outcome
 *
 * @typedef {object} CallRow
 * @property {string} id
 * @property {string} name
 * @property {string | null} plugin
 * @property {"running" | Outcome} state
 * @property {string | null} timer
 * @property {number} started in seconds since the epoch
 * @property {number} seconds
 * @property {number | null} tab
 * @property {string | null} url
 * @property {number} reports
 * @property {number | null} progress
 * @property {number | null} total
 * @property {string | null} message
 * @property {number} logs
 * @property {{code: string, message: string} | null} error
 * @property {string | null} client
 * @property {string | null} allowed
 *
 * @typedef {"ready" | "unavailable" | "closed"} Status
 *
 * @typedef {object} PluginRow
 * @property {string} name
 * @property {"plugin" | "page" | "python" | "remote" | "built-in"} kind
 * @property {string} title
 * @property {string} description
 * @property {string | null} version
 * @property {Status | null} status
 * @property {"named" | "reviewed" | "changed" | "unreviewed"} standing
 * @property {number} tools
 * @property {string[]} patterns
 * @property {number} morePatterns
 * @property {string | null} homepage
 * @property {string | null} directory
 * @property {number} settings
 * @property {string | null} icon
 * @property {number} revision changes whenever tools of any plugin do; the same in all rows
 *
 * @typedef {object} TabRow
 * @property {number} id
 * @property {string | null} browser
 * @property {string} title
 * @property {string} url
 * @property {boolean} active
 * @property {boolean} focused
 * @property {boolean} protected
 * @property {boolean} loading
 * @property {{name: string, readiness: "ready" | "pending" | "unavailable" | "missing", reason: string | null}[]} plugins
 *
 * @typedef {object} BrowserRow
 * @property {string} name
 * @property {number} number
 * @property {string | null} profile the id that its extension keeps
 * @property {number} firstTab what the numbers of its tabs begin with
 * @property {boolean} connected
 * @property {string} userAction what the user should do so that it connects; empty if nothing
 *
 * @typedef {object} ProblemRow one without a plugin and its directory is about the fleet
 * @property {string} id
 * @property {string | null} plugin
 * @property {string | null} directory
 * @property {number | null} tab
 * @property {string} reason
 *
 * @typedef {{id: number, time: number, level: string, plugin: string | null, source: string, text: string}} LogRow
 *
 * @typedef {object} QuestionRow
 * @property {string} id
 * @property {string | null} call the call that waits for the answer
 * @property {string} tool
 * @property {string} title
 * @property {string} plugin
 * @property {string} rule
 * @property {string} arguments
 * @property {string | null} client
 * @property {string} element what the call would use in the page; empty if that is not one element
 * @property {string | null} site
 * @property {string | null} tabTitle
 * @property {string[]} answers
 * @property {"permission" | "sign_in"} about
 * @property {number} until in seconds since the epoch
 *
 * @typedef {object} Sections
 * @property {CallRow} calls
 * @property {PluginRow} plugins
 * @property {TabRow} tabs
 * @property {BrowserRow} browsers
 * @property {ProblemRow} problems
 * @property {QuestionRow} questions
 * @property {LogRow} logs
 *
 * @typedef {keyof Sections} Section
 * @typedef {{reset: boolean, changed: any[], gone: string[]}} Changes
 * @typedef {{boot: string, now: number, version: number} & Partial<Record<Section, Changes>>} Update
 */

const LOGS = 1000; // as many as the server keeps
/** @type {Section[]} */
const AFFECTED = ["questions", "calls"]; // by the server's going

/** A plugin's readiness in one tab, in words. */
export const READINESS = {
  ready: "Ready",
  pending: "Starting",
  unavailable: "Not ready",
  missing: "Not running",
};

export const EXPOSED =
  "This page can observe its tools: it was open before the extension was loaded (then reload it), or its site sandboxes it.";

/**
 * Whether a page can observe the tools that run in it.
 * @param {TabRow} tab
 */
export function isExposed(tab) {
  return !tab.protected && tab.plugins.some(({ readiness }) => readiness !== "missing");
}

/** @type {{[S in Section]: (row: Sections[S]) => string}} */
const KEYS = {
  calls: (row) => row.id,
  plugins: (row) => row.name,
  tabs: (row) => String(row.id),
  browsers: (row) => row.name,
  problems: (row) => row.id,
  questions: (row) => row.id,
  logs: (row) => String(row.id),
};

/**
 * Whether a plugin's tools are off until the user has reviewed it.
 * @param {PluginRow} plugin
 */
export function needsReview({ standing }) {
  return standing === "unreviewed" || standing === "changed";
}

const TITLES = new Intl.Collator(undefined, { numeric: true }); // "Site 2" before "Site 10"

/**
 * The order of plugins: first those with pages, then what else has tools.
 * @param {PluginRow} a
 * @param {PluginRow} b
 */
export function byTitle(a, b) {
  return (
    Number(a.kind === "built-in") - Number(b.kind === "built-in") ||
    TITLES.compare(a.title, b.title)
  );
}

export class Store {
  /** @type {{[S in Section]: Map<string, Sections[S]>}} */
  #rows = {
    calls: new Map(),
    plugins: new Map(),
    tabs: new Map(),
    browsers: new Map(),
    problems: new Map(),
    questions: new Map(),
    logs: new Map(),
  };
  /** @type {Set<(changed: ReadonlySet<Section>) => void>} */
  #listeners = new Set();
  #ahead = 0; // s; how far the server's clock is ahead of the page's
  #isConnected = false;
  /** @type {Partial<{[S in Section]: Map<string, Sections[S]>}>} */
  #whileGone = {}; // what is shown instead of a section's rows while the server is not connected
  isFilled = false; // whether anything has arrived

  /**
   * The rows of a section. While the server is not connected, nobody can answer a question, so there are none, and
   * the calls that ran are shown as lost.
   * @template {Section} S
   * @param {S} section
   * @returns {ReadonlyMap<string, Sections[S]>}
   */
  rows(section) {
    const whileGone = this.#isConnected ? undefined : this.#whileGone[section];
    return whileGone ?? this.#rows[section];
  }

  /** Whether the server was connected and is not any more. */
  get isGone() {
    return this.isFilled && !this.#isConnected;
  }

  /** Whether the server is an endpoint of a fleet: every other one has a browser, or waits for one. */
  get isEndpoint() {
    return this.isFilled && this.#rows.browsers.size === 0;
  }

  /** Changes whenever tools do, so that they are read again. */
  get toolsRevision() {
    const [first] = this.#rows.plugins.values();
    return first?.revision ?? 0;
  }

  /** The server's time, in seconds since the epoch. */
  now() {
    return Date.now() / 1000 + this.#ahead;
  }

  /** @param {(changed: ReadonlySet<Section>) => void} listener */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Handle the end of the connection. */
  disconnect() {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    const calls = [...this.#rows.calls].map(
      ([id, call]) => /** @type {const} */ ([id, this.#ended(call)]),
    );
    this.#whileGone = { questions: new Map(), calls: new Map(calls) };
    this.#notify(new Set(AFFECTED));
  }

  /**
   * A call as it is once its server has gone.
   * @param {CallRow} call
   * @returns {CallRow}
   */
  #ended(call) {
    if (call.state !== "running") return call;
    const error = { code: "SERVER_STOPPED", message: "The server stopped during this call." };
    return { ...call, state: "lost", seconds: Math.max(0, this.now() - call.started), error };
  }

  /** @param {Update} update */
  apply(update) {
    this.#ahead = update.now - Date.now() / 1000;
    this.isFilled = true;
    const sections = /** @type {Section[]} */ (Object.keys(this.#rows));
    /** @type {Set<Section>} */
    const changed = new Set(this.#isConnected ? [] : sections); // what could not be read is read again
    this.#isConnected = true;
    for (const section of sections) {
      const changes = update[section];
      if (changes === undefined) continue;
      changed.add(section);
      const rows = /** @type {Map<string, any>} */ (this.#rows[section]);
      const key = /** @type {(row: any) => string} */ (KEYS[section]);
      if (changes.reset) rows.clear();
      for (const gone of changes.gone) rows.delete(gone);
      for (const row of changes.changed) rows.set(key(row), row);
    }
    const logs = this.#rows.logs;
    for (const key of logs.keys()) {
      if (logs.size <= LOGS) break;
      logs.delete(key);
    }
    this.#notify(changed);
  }

  /** @param {ReadonlySet<Section>} changed */
  #notify(changed) {
    for (const listener of this.#listeners) {
      try {
        listener(changed);
      } catch (error) {
        reportError(error); // the other listeners show other parts of the page
      }
    }
  }
}
