/**
 * Faults that a test injects on the two hops in the browser. The test kit appends this to
 * `content/channel.js` in its copy of the extension; no other copy has it.
 *
 * The rules arrive through `chrome.storage.local`, as `{draws, epoch, version, rules}`;
 * `opentabs_py/core/fault_injection.py` explains them. Once a document has them, its root element says so.
 * Applied faults are written to this world's console, which no page can see.
 */
(() => {
  /** @typedef {{text: any, after: number}} Piece */

  /** @typedef {{counts: number[], drawn: number}} Progress the state of the rules on a line */

  /** @type {any[]} */
  let rules = [];
  /** @type {number[]} random numbers from 0 to 1, for each line from the first */
  let draws = [];
  let epoch = 0;
  /** @type {Map<string, Progress>} */
  const lines = new Map();

  /**
   * @param {string} hop
   * @param {string} direction
   * @returns {Progress}
   */
  function progressOn(hop, direction) {
    const name = `${hop} ${direction}`;
    const progress = lines.get(name) ?? { counts: [], drawn: 0 };
    lines.set(name, progress);
    return progress;
  }

  /**
   * @param {any} message
   * @param {Progress} progress
   */
  function corrupt(message, progress) {
    const isText = typeof message === "string";
    const text = isText ? message : JSON.stringify(message);
    const draw = draws[progress.drawn++ % draws.length] ?? 0;
    const at = Math.floor(draw * text.length);
    const corrupted = `${text.slice(0, at)}${text[at] === "#" ? "*" : "#"}${text.slice(at + 1)}`;
    if (isText) {
      return corrupted;
    }
    try {
      return JSON.parse(corrupted);
    } catch {
      return corrupted;
    }
  }

  /**
   * One direction of one hop; messages are passed on in order.
   * @param {string} hop
   * @param {string} direction
   * @param {(message: any) => void} pass
   */
  function line(hop, direction, pass) {
    /** @type {Piece[]} */
    let held = [];
    /** @type {Piece[]} */
    const queue = [];
    let busy = false;

    function drain() {
      for (;;) {
        const piece = queue[0];
        if (piece === undefined || busy) {
          return;
        }
        if (piece.after > 0) {
          busy = true;
          const { after } = piece;
          piece.after = 0;
          setTimeout(() => {
            busy = false;
            drain();
          }, after);
          return;
        }
        queue.shift();
        pass(piece.text);
      }
    }

    /**
     * @param {string} kind
     * @param {any} text
     */
    return (kind, text) => {
      const { action, ms } = actionOn(hop, direction, kind);
      if (action === "reorder") {
        held.push({ text, after: 0 });
        return;
      }
      const later = held;
      held = [];
      if (action === "duplicate") {
        queue.push({ text, after: 0 }, { text, after: 0 });
      } else if (action === "corrupt") {
        queue.push({ text: corrupt(text, progressOn(hop, direction)), after: 0 });
      } else if (action !== "drop") {
        queue.push({ text, after: ms });
      }
      queue.push(...later);
      drain();
    };
  }

  /**
   * @param {string} hop
   * @param {string} direction
   * @param {string} kind
   */
  function actionOn(hop, direction, kind) {
    const { counts } = progressOn(hop, direction);
    for (const [index, rule] of rules.entries()) {
      if (
        rule.hop === hop &&
        (rule.direction === null || rule.direction === direction) &&
        (rule.kind === null || rule.kind === kind)
      ) {
        const count = (counts[index] ?? 0) + 1;
        counts[index] = count;
        if (rule.nth === null || rule.nth.includes(count)) {
          console.debug(
            `OpenTabs: fault ${JSON.stringify([epoch, rule.number, direction, count])}`,
          );
          return { action: rule.action, ms: rule.action === "delay" ? rule.ms : 0 };
        }
      }
    }
    return { action: null, ms: 0 };
  }

  // --- the event hop: the channel's own class, with a line in each direction ---

  const Channel = PageChannel;
  PageChannel = class extends Channel {
    /** @type {(kind: string, message: {kind: string, text: string}) => void} */
    #down;

    /** @param {(kind: string, text: string) => void} handle */
    constructor(handle) {
      const up = line("event", "up", ({ kind, text }) => handle(kind, text));
      super((kind, text) => up(kind, { kind, text }));
      this.#down = line("event", "down", ({ kind, text }) => super.send(kind, text));
    }

    /**
     * @override
     * @param {string} kind
     * @param {string} text
     */
    send(kind, text) {
      if (rules.length === 0) {
        return super.send(kind, text); // whose answer says whether the runtime is there
      }
      this.#down(kind, { kind, text });
      return true;
    }
  };

  // --- the port hop ---

  const { connect } = chrome.runtime;
  chrome.runtime.connect = /** @type {any} */ (
    (/** @type {any[]} */ ...args) => {
      const port = /** @type {any} */ (connect).apply(chrome.runtime, args);
      const up = line("port", "up", (message) => {
        try {
          port.postMessage(message);
        } catch {
          // The port closed while the message was delayed.
        }
      });
      return {
        postMessage: (/** @type {any} */ message) => up(kindOf(message), message),
        disconnect: () => port.disconnect(),
        onDisconnect: port.onDisconnect,
        onMessage: {
          addListener: (/** @type {(message: any) => void} */ listener) => {
            const down = line("port", "down", listener);
            port.onMessage.addListener((/** @type {any} */ message) =>
              down(kindOf(message), message),
            );
          },
        },
      };
    }
  );

  /**
   * @param {any} message a frame, or an internal object for the other end
   * @returns {string}
   */
  function kindOf(message) {
    if (typeof message !== "string") {
      return message.type === "traced" ? kindOf(message.frame) : String(message.type);
    }
    return /"method":"([a-z.]+)"/.exec(message.slice(0, 200))?.[1] ?? "chunk";
  }

  // --- the rules ---

  /** @param {any} plan */
  function follow(plan) {
    if (plan?.epoch !== epoch) {
      lines.clear();
    }
    rules = plan?.rules ?? [];
    draws = plan?.draws ?? [];
    epoch = plan?.epoch;
    const mark = () => {
      document.documentElement.dataset.opentabsFaults = String(plan?.version ?? 0);
    };
    if (document.documentElement === null) {
      document.addEventListener("DOMContentLoaded", mark, { once: true });
    } else {
      mark();
    }
  }

  chrome.storage.onChanged.addListener(({ faults }) => {
    if (faults !== undefined) {
      follow(faults.newValue);
    }
  });
  chrome.storage.local.get("faults").then(({ faults }) => follow(faults));
})();
