/** The plugin's name: the build writes it in place of this. Absent in unit tests. */
declare const __OPENTABS_PLUGIN__: string | undefined;

interface ErrorConstructor {
  /** V8's: sets an object's `stack` to where this is called, without the frames above a function. */
  captureStackTrace(target: object, above?: (...args: never) => unknown): void;
}
