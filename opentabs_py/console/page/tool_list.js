/**
 * Tools as a list, with their permissions.
 *
 * @typedef {object} ToolInShort
 * @property {string} name
 * @property {string} owner
 * @property {string} title
 * @property {string} summary
 * @property {string} group
 * @property {string} icon
 * @property {"off" | "ask" | "auto" | null} permission
 * @property {string | null} because
 * @property {string} rule that names its permission
 * @property {boolean} readOnly
 *
 * @typedef {object} Change of permissions
 * @property {Link} link
 * @property {(note: string) => void} tell shows a note about the last change; empty for none
 */

/** @import {Link} from "./link.js" */

import { h } from "./dom.js";
import { toolIcon } from "./icons.js";

export const PERMISSIONS = { auto: "Runs", ask: "Asks you", off: "Off" };

/**
 * @param {ToolInShort[]} tools
 * @param {Change} [change] of their permissions
 */
export function toolList(tools, change) {
  return h(
    "ul",
    { class: "tools" },
    ...tools.map((tool) =>
      h(
        "li",
        {},
        h(
          "a",
          {
            class: "tool-link",
            href: `#/try/${encodeURIComponent(tool.name)}`,
            "data-keep": `tool ${tool.name}`,
          },
          toolIcon(tool.icon),
          h(
            "span",
            { class: "what" },
            h("strong", {}, tool.title || tool.name),
            h("code", { class: "quiet" }, tool.name),
            tool.summary !== "" && h("span", { class: "quiet summary" }, tool.summary),
          ),
          change === undefined && mark(tool),
        ),
        change !== undefined && permissionOf(tool, change),
      ),
    ),
  );
}

/** @param {ToolInShort} tool */
function mark({ permission, because }) {
  if (permission === null || permission === "auto") return null;
  const kind = permission === "off" ? "badge" : "badge warn";
  return h("span", { class: kind, title: because ?? "" }, PERMISSIONS[permission]);
}

/**
 * @param {ToolInShort} tool
 * @param {Change} change
 */
function permissionOf(tool, { link, tell }) {
  if (tool.permission === null) return null;
  const select = h(
    "select",
    {
      class: `permission ${tool.permission}`,
      "data-keep": `permission of ${tool.name}`,
      "aria-label": `Permission of ${tool.name}`,
    },
    ...Object.entries(PERMISSIONS).map(([value, text]) => h("option", { value }, text)),
  );
  /** @type {string} */
  let saved = tool.permission;
  const because = `Because ${tool.because}`;
  select.value = saved;
  select.title = because;
  select.addEventListener("change", async () => {
    const wanted = select.value;
    select.setCustomValidity("");
    select.title = because;
    try {
      tell((await link.post("/permission", { rule: tool.rule, permission: wanted })).note);
      saved = wanted;
      select.className = `permission ${saved}`;
    } catch (error) {
      select.value = saved;
      select.title = /** @type {Error} */ (error).message;
      select.setCustomValidity(select.title);
      select.reportValidity();
    }
  });
  return select;
}
