const REFUSED = ["__proto__", "constructor", "prototype"];

/**
 * A value that the page's own scripts have left on `window`.
 *
 * @example
 * const token = getPageGlobal("APP.session.token");
 *
 * @template [T=unknown]
 * @param {string} path names joined by dots
 * @returns {T | undefined} undefined when any step is missing, throws, or is one of `__proto__`,
 *   `constructor` and `prototype`
 */
export function getPageGlobal(path) {
  try {
    /** @type {any} */
    let value = globalThis;
    for (const step of path.split(".")) {
      value = REFUSED.includes(step) ? undefined : value[step];
    }
    return value;
  } catch {
    return undefined;
  }
}

/**
 * The page's URL as it is now.
 *
 * @returns {string}
 */
export function getCurrentUrl() {
  return location.href;
}

/**
 * The page's title as it is now.
 *
 * @returns {string}
 */
export function getPageTitle() {
  return document.title;
}
