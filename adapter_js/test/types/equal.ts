/** `true` when two types are the same, distinguishing `any` and `readonly`. */
export type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only for `true`: `is<Equal<typeof value, string>>(true)`. */
export declare function is<T extends boolean>(verdict: T): void;
