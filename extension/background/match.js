/**
 * Chrome's match patterns, for what the API does not tell: which plugins a URL belongs to.
 * The Python side is `opentabs_py/core/match.py`; one table of cases tests both.
 */

/**
 * @param {string} pattern such as `https://*.example.com/path/*`
 * @returns {RegExp} matches whole URLs, without their fragment
 */
export function compile(pattern) {
  if (pattern === "<all_urls>") {
    return /^(?:https?|ftp|file):\/\//;
  }
  const parts = /^(\*|https?|file|ftp):\/\/([^/:]*)(?::(\*|\d+))?(\/.*)$/.exec(pattern);
  if (parts === null) {
    throw new Error(`"${pattern}" is not a match pattern`);
  }
  const [, scheme, host = "", port, path = ""] = parts;
  return new RegExp(
    "^" +
      (scheme === "*" ? "https?" : scheme) +
      "://" +
      hostPattern(host) +
      (port === undefined || port === "*" ? "(?::\\d+)?" : `:${port}`) +
      literal(path).replaceAll("\\*", ".*") +
      "$",
  );
}

/** @param {string} host */
function hostPattern(host) {
  if (host === "*") {
    return "[^/]*?";
  }
  if (host.startsWith("*.")) {
    return `(?:[^/]+\\.)?${literal(host.slice(2))}`;
  }
  return literal(host);
}

/** @param {string} text */
function literal(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/**
 * @param {{matches: string[], excludeMatches: string[]}} plugin
 * @param {string} url
 */
export function serves(plugin, url) {
  const bare = url.split("#", 1)[0] ?? "";
  return (
    plugin.matches.some((pattern) => compiled(pattern).test(bare)) &&
    !plugin.excludeMatches.some((pattern) => compiled(pattern).test(bare))
  );
}

/** @type {Map<string, RegExp>} */
const cache = new Map();

/** @param {string} pattern */
function compiled(pattern) {
  let regexp = cache.get(pattern);
  if (regexp === undefined) {
    regexp = compile(pattern);
    cache.set(pattern, regexp);
  }
  return regexp;
}
