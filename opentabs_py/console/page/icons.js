/**
 * Icons: those of the page itself, and Lucide's for tools.
 *
 * The outlines are from Lucide (https://lucide.dev), ISC License; see lucide.LICENSE.
 */

/** @import {Link} from "./link.js" */

import { h, outline } from "./dom.js";

const GLYPHS = {
  calls: "M22 12h-4l-3 9L9 3l-3 9H2",
  plugins: "M12 22v-5M9 8V2M15 8V2M18 8v5a4 4 0 0 1-4 4h-4a4 4 0 0 1-4-4V8Z",
  try: "M5 5a2 2 0 0 1 3.008-1.728l11.997 6.998a2 2 0 0 1 .003 3.458l-12 7A2 2 0 0 1 5 19z",
  tabs: "M4 5h16a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2M2 10h20M8 5v5",
  logs: "M4 6h16M4 12h16M4 18h10",
  approvals: "M12 3 4 6v6c0 5 3.5 8 8 9 4.5-1 8-4 8-9V6zM9 12l2 2 4-4",
  back: "M15 18l-6-6 6-6",
  external: "M15 3h6v6M10 14 21 3M18 13v6a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V8a2 2 0 0 1 2-2h6",
  search: "M21 21l-4.3-4.3M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14",
  plus: "M5 12h14M12 5v14",
  minus: "M5 12h14",
  python:
    "M8 3H7a2 2 0 0 0-2 2v5a2 2 0 0 1-2 2 2 2 0 0 1 2 2v5a2 2 0 0 0 2 2h1M16 21h1a2 2 0 0 0 2-2v-5a2 2 0 0 1 2-2 2 2 0 0 1-2-2V5a2 2 0 0 0-2-2h-1",
  warning: "M12 3 2 20h20zM12 10v4M12 17h.01",
};

/**
 * @param {keyof typeof GLYPHS} name
 * @param {string} [className]
 */
export function glyph(name, className) {
  return outline(GLYPHS[name], className);
}

/** @type {Promise<Record<string, string>> | undefined} */
let outlines;

/**
 * The icon of a tool; drawn as soon as the outlines are there.
 * @param {string} name
 */
export function toolIcon(name) {
  const place = outline("", "tool-icon");
  outlines ??= fetch(new URL("lucide.json", import.meta.url)).then((answer) => answer.json());
  outlines.then(
    (all) =>
      place.firstElementChild?.setAttribute(
        "d",
        (Object.hasOwn(all, name) && all[name]) || all.wrench || "",
      ),
    () => {}, // a page without icons still works
  );
  return place;
}

/**
 * The icon of a plugin, or its initial.
 * @param {{name: string, title: string, kind: string, icon: string | null}} plugin
 * @param {Link} link
 */
export function pluginIcon(plugin, link) {
  const place = h("span", { class: "plugin-icon", "aria-hidden": "true" });
  if (plugin.icon !== null) {
    const image = h("img", { alt: "", width: 24, height: 24 });
    image.addEventListener("error", () => image.replaceWith(initial(plugin.title)));
    link.load(image, `/icons/${encodeURIComponent(plugin.name)}.svg?${plugin.icon}`);
    place.append(image);
  } else if (plugin.kind === "python") {
    place.append(glyph("python"));
  } else {
    place.append(initial(plugin.title));
  }
  let hue = 0;
  for (const character of plugin.name) hue = (hue * 31 + (character.codePointAt(0) ?? 0)) % 360;
  place.style.setProperty("--hue", String(hue));
  return place;
}

/** @param {string} title */
function initial(title) {
  const [first = "?"] = title.trim();
  return h("span", {}, first.toUpperCase());
}
