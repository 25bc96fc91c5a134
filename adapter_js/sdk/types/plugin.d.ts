/** @import * as Shapes from "./shapes.js" */
import type * as Shapes from "./shapes.js";
export type OpenTabsPlugin = Shapes.OpenTabsPlugin;
/** The base class of a plugin, which `src/index` exports by default. It only provides types. */
export declare const OpenTabsPlugin: typeof Shapes.OpenTabsPlugin;
