/**
 * Prepares plugins' log records for sending. Any script of the page can write such records, so
 * nothing in them is trusted, and their rate is limited.
 */
var PluginLogs = class PluginLogs {
  static #RATE = 50; // records per second
  static #BURST = 200; // records at once
  static #MAX = 8000; // characters of one record
  static #LEVELS = new Map([
    ["debug", "debug"],
    ["info", "info"],
    ["warn", "warning"],
    ["warning", "warning"],
    ["error", "error"],
  ]);

  #tokens = PluginLogs.#BURST;
  #refilled = 0;
  #dropped = 0;

  /**
   * @param {any[]} entries as the ecosystem's SDK posts them
   * @returns the members of a `plugin.log` message, or null if none may be sent now
   */
  admit(entries) {
    const now = Date.now();
    // A clock that was set back must not reduce the budget.
    const gained = (Math.max(0, now - this.#refilled) / 1000) * PluginLogs.#RATE;
    this.#tokens = Math.min(PluginLogs.#BURST, this.#tokens + gained);
    this.#refilled = now;
    const admitted = entries.slice(0, Math.floor(this.#tokens));
    this.#tokens -= admitted.length;
    this.#dropped += entries.length - admitted.length;
    if (admitted.length === 0) {
      return null;
    }
    const dropped = this.#dropped;
    this.#dropped = 0;
    // Unlike map(), this visits the holes that a page may leave in its array.
    return { entries: Array.from(admitted, (entry) => PluginLogs.#clean(entry, now)), dropped };
  }

  /**
   * @param {any} entry
   * @param {number} now
   */
  static #clean(entry, now) {
    return {
      level: PluginLogs.#LEVELS.get(entry?.level) ?? "info",
      message: PluginLogs.#text(entry),
      time: Number.isFinite(entry?.ts) && entry.ts >= 0 ? entry.ts : now,
    };
  }

  /** @param {any} entry */
  static #text(entry) {
    let text = "";
    try {
      text = String(entry?.message ?? "");
      const data = [entry?.data ?? []].flat();
      const errors = data.filter(PluginLogs.#isError);
      const others = data.filter((each) => !PluginLogs.#isError(each));
      if (others.length > 0) {
        text += ` ${JSON.stringify(others)}`;
      }
      text += errors.map((error) => `\n${PluginLogs.#showError(error)}`).join("");
    } catch {
      text += " (what more was logged cannot be shown)";
    }
    return text.slice(0, PluginLogs.#MAX).toWellFormed();
  }

  /** @param {any} value as the SDK shows it: an error is an object of what JSON can represent */
  static #isError(value) {
    return ["name", "message", "stack"].every((key) => typeof value?.[key] === "string");
  }

  /**
   * Shows an error as Chromium's console does, with the text and the frames of its stack, then those
   * of its causes, and what else it has.
   *
   * @param {any} error
   * @returns {string}
   */
  static #showError({ name, message, stack, cause, ...more }) {
    const lines = [stack.includes(message) ? stack : `${name}: ${message}\n${stack}`];
    if (cause !== undefined) {
      const shown = PluginLogs.#isError(cause)
        ? PluginLogs.#showError(cause)
        : JSON.stringify(cause);
      lines.push(`[cause]: ${shown}`);
    }
    if (Object.keys(more).length > 0) {
      lines.push(JSON.stringify(more));
    }
    return lines.join("\n");
  }
};

/**
 * Keeps the records of plugins that the document does not have yet: their pre-scripts run, and may
 * fail, long before the document is complete. A page can name any plugins, so this is little.
 */
var EarlyLogs = class EarlyLogs {
  static #PLUGINS = 10;
  static #NAME = 256; // characters; no plugin's name is longer
  static #RECORDS = 50; // of one plugin

  /** @type {Map<string, {entries: object[], dropped: number}> | null} null once they are forgotten */
  #kept = new Map();

  /**
   * @param {unknown} plugin
   * @param {{entries: object[], dropped: number}} admitted
   */
  keep(plugin, { entries, dropped }) {
    if (this.#kept === null || typeof plugin !== "string" || plugin.length > EarlyLogs.#NAME) {
      return;
    }
    const kept = this.#kept.get(plugin) ?? { entries: [], dropped: 0 };
    if (this.#kept.size < EarlyLogs.#PLUGINS) {
      this.#kept.set(plugin, kept);
    }
    const fitting = entries.slice(0, EarlyLogs.#RECORDS - kept.entries.length);
    kept.entries.push(...fitting);
    kept.dropped += dropped + entries.length - fitting.length;
  }

  /**
   * Returns what a plugin has logged, and forgets it.
   * @param {string} plugin
   * @returns the members of its `plugin.log` message, if it has logged anything
   */
  drain(plugin) {
    const kept = this.#kept?.get(plugin);
    this.#kept?.delete(plugin);
    return kept;
  }

  /** Forgets everything, and keeps nothing more. */
  forget() {
    this.#kept = null;
  }
};

/**
 * Knows when all messages posted to this window so far have arrived: a message to a port arrives in
 * a separate task after them, and the page does not see it.
 */
var PostedMessages = class PostedMessages {
  /** @type {MessagePort | null} */
  #port = null;
  /** @type {(() => void)[]} */
  #waiting = [];

  /** @param {() => void} run */
  whenArrived(run) {
    this.#waiting.push(run);
    this.#open().postMessage(null);
  }

  /** Runs everything that waits now: the document is going away, and pending messages with it. */
  runNow() {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#port = null; // if the document comes back, so do the messages that were on their way
    for (const run of waiting.splice(0)) {
      run();
    }
  }

  #open() {
    if (this.#port === null) {
      const { port1, port2 } = new MessageChannel();
      const waiting = this.#waiting;
      port1.onmessage = () => waiting.shift()?.();
      this.#port = port2;
    }
    return this.#port;
  }
};
