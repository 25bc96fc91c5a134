/**
 * Copy a call as a test, a command, a program or a request.
 */

/** @import {Console} from "./main.js" */

import { copyButton, h } from "./dom.js";

/**
 * @param {Console["link"]} link
 * @param {string} tool
 * @param {() => Record<string, unknown>} read
 */
export function copyAs(link, tool, read) {
  const kinds = /** @type {[string, string][]} */ ([
    ["pytest", "pytest test"],
    ["cli", "Command"],
    ["python", "Python"],
    ["mcp", "MCP request"],
  ]);
  const text = h("pre", { tabindex: "0", "aria-label": "Copied code" });
  const place = h(
    "div",
    { class: "copy-place", hidden: true },
    copyButton(() => text.textContent ?? "", "Copy"),
    text,
  );
  const buttons = kinds.map(([kind, name]) =>
    h(
      "button",
      {
        type: "button",
        onclick: async () => {
          try {
            const copies = await link.post("/snippets", { tool, arguments: read() });
            text.textContent = copies[kind];
            await navigator.clipboard?.writeText(copies[kind]).catch(() => {}); // it is shown, too
          } catch (error) {
            text.textContent = /** @type {Error} */ (error).message;
          }
          place.hidden = false;
        },
      },
      name,
    ),
  );
  return h(
    "div",
    {},
    h(
      "div",
      { class: "head-of", role: "group", "aria-label": "Copy as" },
      h("span", { class: "quiet" }, "Copy as"),
      ...buttons,
    ),
    place,
  );
}
