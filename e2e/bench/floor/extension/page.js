/**
 * The tools, without any guarantee. Reports are sent when there are a thousand, or at the end
 * of the page's job. Messages are sent in pieces: "+" before one that has a next, "." before the last.
 */
(() => {
  const PIECE = 256 * 1024; // characters; pieces of 1 Mi take longer, smaller ones as long
  const BATCH = 1000; // reports; all 10,000 at once take twice as long, for the hops take turns

  /** @typedef {(report: object) => void} Report */

  /** @type {Record<string, (params: any, report: Report) => unknown>} */
  const tools = {
    echo: ({ value }) => ({ value }),

    flood({ count }, report) {
      for (let i = 0; i < count; i++) {
        const message = `report ${i + 1} of ${count}, ${"x".repeat(100)}`;
        report({ progress: i + 1, total: count, message });
      }
    },

    async clock({ count, gap }, report) {
      for (let i = 0; i < count; i++) {
        await new Promise((resolve) => setTimeout(resolve, gap));
        report({ message: String(performance.now()) });
      }
    },

    big: ({ size }) => ({ text: "0123456789abcde\u00e9".repeat(size / 16) }),
  };

  /** @param {string} text */
  function tell(text) {
    let start = 0;
    for (; text.length - start > PIECE; start += PIECE) {
      emit(`+${text.slice(start, start + PIECE)}`);
    }
    emit(`.${text.slice(start)}`);
  }

  /** @param {string} detail */
  function emit(detail) {
    document.dispatchEvent(new CustomEvent("floor:up", { detail }));
  }

  document.addEventListener("floor:down", async (event) => {
    const { id, tool, params } = JSON.parse(/** @type {CustomEvent<string>} */ (event).detail);
    /** @type {string[]} */
    let reports = [];
    const flush = () => {
      if (reports.length > 0) {
        tell(`{"id":${id},"reports":[${reports.join()}]}`);
        reports = [];
      }
    };
    const value = await tools[tool]?.(params, (report) => {
      const waiting = reports.push(JSON.stringify(report));
      if (waiting === 1) {
        queueMicrotask(flush);
      } else if (waiting === BATCH) {
        flush();
      }
    });
    flush();
    tell(`{"id":${id},"value":${JSON.stringify(value) ?? "null"}}`);
  });
})();
