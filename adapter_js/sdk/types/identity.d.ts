/** The name of the plugin that this code was bundled into; "" where it was not, as in unit tests. */
export declare const PLUGIN: string;
