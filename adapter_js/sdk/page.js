const REFUSED = ["__proto__", "constructor", "prototype"];

/**
 * Returns a value that the page's own scripts have set on `window`.
 *
 * @example
 * const token = getPageGlobal("APP.session.token");
 *
 * @template [T=unknown]
 * @param {string} path names joined by dots
 * @returns {T | undefined} undefined if any step is missing, throws, or is one of `__proto__`,
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
 * Returns the page's current URL.
 *
 * @returns {string}
 */
export function getCurrentUrl() {
  return location.href;
}

/**
 * Returns the page's current title.
 *
 * @returns {string}
 */
export function getPageTitle() {
  return document.title;
}
