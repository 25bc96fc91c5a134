/** The name of the plugin that this code was bundled into; "" where it was not, as in unit tests. */
export const PLUGIN = typeof __OPENTABS_PLUGIN__ === "string" ? __OPENTABS_PLUGIN__ : "";
