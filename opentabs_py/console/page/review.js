/**
 * The content of a plugin's build and its changes, for the user who approves it.
 */

/** @import {Console} from "./main.js" */
/** @import {Part} from "./plugin.js" */

import { h, plural, write } from "./dom.js";
import { whyFailed } from "./link.js";

/**
 * @typedef {object} Build
 * @property {string} digest
 * @property {{version: string, at: number} | null} approved
 * @property {{name: string, size: number, text: string, left: number}[]} files `left`: characters not sent
 * @property {string[]} changes
 * @property {number} changesLeft lines not sent
 */

/**
 * @param {Console["link"]} link
 * @param {{name: string, standing: string}} plugin
 * @returns {Part}
 */
export function reviewSection(link, { name, standing }) {
  const place = h("div", {}, h("p", { class: "quiet" }, "Loading its source"));
  const wrong = h("p", { class: "wrong", role: "alert", tabindex: "-1", hidden: true });
  const what =
    standing === "changed" ? "It has changed since you approved it" : "It has not been reviewed";
  let digest = "";
  const element = h(
    "section",
    { class: "problems review", "aria-label": "Review" },
    h("h2", {}, what),
    h(
      "p",
      {},
      "Its tools are off, and none of its code runs in your pages, until you approve this build.",
    ),
    wrong,
    place,
  );

  async function read() {
    try {
      const build = /** @type {Build} */ (await link.get(`/reviews/${encodeURIComponent(name)}`));
      if (build.digest === digest) return;
      if (digest !== "") warn("The plugin has just changed. This is its new build.");
      digest = build.digest;
      place.replaceChildren(...parts(name, build, approve));
    } catch (error) {
      digest = "";
      place.replaceChildren(h("p", { class: "wrong" }, whyFailed(error)));
    }
  }

  /** @param {string} text */
  function warn(text) {
    wrong.hidden = false;
    write(wrong, text);
  }

  /** @param {HTMLButtonElement} button */
  async function approve(button) {
    button.disabled = true;
    try {
      await link.post("/review", { plugin: name, digest });
    } catch (error) {
      button.disabled = false;
      warn(whyFailed(error));
      wrong.focus(); // it is far above the button
      await read(); // the plugin may have changed
    }
  }

  return { element, read };
}

/**
 * @param {string} plugin
 * @param {Build} build
 * @param {(button: HTMLButtonElement) => void} approve
 */
function parts(plugin, { approved, files, changes, changesLeft }, approve) {
  const left = [
    changesLeft > 0 && `${plural(changesLeft, "line")} of what has changed`,
    ...files.map(
      (each) => each.left > 0 && `the last ${plural(each.left, "character")} of ${each.name}`,
    ),
  ].filter((each) => each !== false);
  const button = h("button", { type: "button", class: "primary" }, "Approve this build");
  button.addEventListener("click", () => approve(button));
  return [
    changes.length > 0 &&
      h(
        "details",
        { open: true },
        h("summary", {}, `What has changed since version ${approved?.version ?? "?"}`),
        h(
          "pre",
          { class: "diff", tabindex: "0" },
          ...changes.map((line) => h("span", { class: kindOf(line) }, `${line}\n`)),
        ),
      ),
    ...files.map(({ name, size, text }) =>
      h(
        "details",
        { ontoggle: fillOnce(text) },
        h("summary", {}, name, h("span", { class: "quiet" }, ` ${Math.ceil(size / 1024)} KiB`)),
        h("pre", { tabindex: "0" }),
      ),
    ),
    left.length > 0 &&
      h(
        "p",
        { class: "notice" },
        `Not shown here: ${left.join(", and ")}. Read the whole files in a terminal before you approve: `,
        h("code", {}, `opentabs review ${plugin} --source`),
      ),
    h("div", { class: "actions" }, button),
  ].filter((part) => part !== false);
}

/** @param {string} text */
function fillOnce(text) {
  return (/** @type {Event} */ event) => {
    const pre = /** @type {HTMLElement} */ (event.currentTarget).querySelector("pre");
    if (pre !== null && pre.textContent === "") pre.textContent = text;
  };
}

/** @param {string} line */
function kindOf(line) {
  return { "+": "added", "-": "removed", "@": "place" }[line.charAt(0)] ?? "quiet";
}
