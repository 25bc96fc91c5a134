/** @import * as Shapes from "./shapes.js" */

/** @typedef {Shapes.OpenTabsPlugin} OpenTabsPlugin */

class Plugin {}

/** The base class of a plugin, which `src/index` exports by default. It only provides types. */
export const OpenTabsPlugin = /** @type {typeof Shapes.OpenTabsPlugin} */ (
  /** @type {unknown} */ (Plugin)
);
