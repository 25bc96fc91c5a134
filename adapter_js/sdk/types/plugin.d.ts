/** @import * as Shapes from "./shapes.js" */
import type * as Shapes from "./shapes.js";
export type OpenTabsPlugin = Shapes.OpenTabsPlugin;
/** What a plugin extends and its `src/index` exports by default. All it does is in its types. */
export declare const OpenTabsPlugin: typeof Shapes.OpenTabsPlugin;
