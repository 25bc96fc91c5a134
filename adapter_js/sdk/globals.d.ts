/** The plugin's name: the build writes it in place of this. Absent in unit tests. */
declare const __OPENTABS_PLUGIN__: string | undefined;
