/** The name of the plugin that this code was bundled into; "" in unit tests, without a bundle. */
export const PLUGIN = typeof __OPENTABS_PLUGIN__ === "string" ? __OPENTABS_PLUGIN__ : "";
