/** @import * as Shapes from "./shapes.js" */

/** @typedef {Shapes.OpenTabsPlugin} OpenTabsPlugin */

class Plugin {}

/** What a plugin extends and its `src/index` exports by default. All it does is in its types. */
export const OpenTabsPlugin = /** @type {typeof Shapes.OpenTabsPlugin} */ (
  /** @type {unknown} */ (Plugin)
);
