/** The name of the plugin that this code was bundled into; "" in unit tests, without a bundle. */
export declare const PLUGIN: string;
