/** Runs before a relay that comes into a document whose own scripts may have run already. */
/** @type {any} */ (globalThis).openTabsLate = true;
