/**
 * The files kept of a test: within the report if they are small, or else beside it.
 */

/** @import {TestData} from "./test_details.js" */

import { h } from "./dom.js";

/** @typedef {{name: string, size: number, href: string, data: string}} KeptFile */

/** @type {readonly (readonly [RegExp, string])[]} */
const HINTS = [
  [/^trace.*\.zip$/, "Playwright’s trace: open it with playwright show-trace"],
  [/\.trace$/, "its calls: draw them with opentabs trace show"],
  [/\.webm$/, "video"],
  [/\.png$/, "screenshot"],
];

/** @param {TestData & {files?: KeptFile[]}} test */
export function kept({ files = [] }) {
  if (files.length === 0) return [];
  const videos = files.filter(({ data }) => data !== "");
  return [
    h(
      "section",
      { "aria-label": "Files" },
      h("h3", {}, "Files"),
      ...videos.map(({ name, data }) =>
        h("video", { controls: true, src: data, "aria-label": name, preload: "metadata" }),
      ),
      h(
        "ul",
        { class: "kept" },
        ...files.map(({ name, size, href }) =>
          h(
            "li",
            {},
            h("a", { href, target: "_blank", rel: "noreferrer" }, name),
            h("span", { class: "quiet" }, [hint(name), sizeText(size)].filter(Boolean).join(" · ")),
          ),
        ),
      ),
      h(
        "p",
        { class: "quiet" },
        "They are beside the report, so the links work where these files are.",
      ),
    ),
  ];
}

/** @param {string} name */
function hint(name) {
  return HINTS.find(([pattern]) => pattern.test(name))?.[1] ?? "";
}

/** @param {number} bytes */
function sizeText(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}
