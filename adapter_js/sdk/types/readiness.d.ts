/**
 * Makes the host call `isReady()` again now instead of within the next 30 s, for example when the
 * user has signed in or out.
 */
export declare function notifyReadinessChanged(): void;
