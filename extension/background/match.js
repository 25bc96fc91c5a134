/**
 * Chrome's match patterns, because the API does not say which plugins a URL belongs to.
 * The Python side is `opentabs_py/core/sites/match_patterns.py`; the same table of cases tests both.
 */

const DEFAULT_PORTS = new Map([
  ["http", "80"],
  ["https", "443"],
  ["ftp", "21"],
]);

/**
 * @typedef {object} Pattern
 * @property {string[]} schemes
 * @property {string} host "*" is every host, "*.x" is x and all its subdomains
 * @property {string} port "*" is every port
 * @property {string} path a glob over path and query
 */

/** @type {Map<string, Pattern>} */
const cache = new Map();

/**
 * @template {{matches: string[], excludeMatches: string[]}} Plugin
 * @param {Plugin[]} plugins
 * @param {string} url
 * @returns {Plugin[]} those that serve it
 */
export function serving(plugins, url) {
  if (!URL.canParse(url)) {
    return [];
  }
  const address = addressOf(new URL(url));
  const isMatched = (/** @type {string} */ pattern) => matches(compile(pattern), address);
  return plugins.filter(
    (plugin) => plugin.matches.some(isMatched) && !plugin.excludeMatches.some(isMatched),
  );
}

/** @param {URL} url */
function addressOf({ protocol, hostname, port, pathname, search }) {
  const scheme = protocol.slice(0, -1);
  return {
    scheme,
    host: bare(hostname),
    port: port || DEFAULT_PORTS.get(scheme),
    target: pathname + search,
  };
}

/**
 * @param {string} pattern such as `https://*.example.com/path/*`
 * @returns {Pattern}
 */
function compile(pattern) {
  let compiled = cache.get(pattern);
  if (compiled === undefined) {
    compiled = parse(pattern);
    cache.set(pattern, compiled);
  }
  return compiled;
}

/**
 * @param {string} pattern
 * @returns {Pattern}
 */
function parse(pattern) {
  if (pattern === "<all_urls>") {
    return { schemes: ["http", "https", "ftp", "file"], host: "*", port: "*", path: "/*" };
  }
  const parts = /^(\*|https?|file|ftp):\/\/(\[[^\]/]*\]|[^/:]*)(?::(\*|\d+))?(\/.*)$/s.exec(
    pattern,
  );
  if (parts === null) {
    throw new Error(`"${pattern}" is not a match pattern`);
  }
  const [, scheme = "", host = "", port = "*", path = ""] = parts;
  return {
    schemes: scheme === "*" ? ["http", "https"] : [scheme],
    host: scheme === "file" ? "*" : bare(host),
    port,
    path,
  };
}

/**
 * @param {Pattern} pattern
 * @param {ReturnType<typeof addressOf>} address
 */
function matches({ schemes, host, port, path }, address) {
  const { target } = address;
  return (
    schemes.includes(address.scheme) &&
    (port === "*" || port === address.port) &&
    matchesHost(host, address.host) &&
    // In Chrome, `/inbox/*` matches `/inbox` as well.
    (path === `${target}/*` || matchesGlob(path, target))
  );
}

/** @param {string} host */
function bare(host) {
  return host.toLowerCase().replace(/\.$/, "");
}

/**
 * @param {string} pattern
 * @param {string} host
 */
function matchesHost(pattern, host) {
  if (!pattern.startsWith("*")) {
    return host === pattern;
  }
  return pattern === "*" || host === pattern.slice(2) || host.endsWith(pattern.slice(1));
}

/**
 * Matches a glob with `*` as the only wildcard, without a regular expression's backtracking.
 * @param {string} glob
 * @param {string} text
 */
function matchesGlob(glob, text) {
  const [first = "", ...middle] = glob.split("*");
  const last = middle.pop();
  if (last === undefined) {
    return text === glob;
  }
  if (!text.startsWith(first)) {
    return false;
  }
  let at = first.length;
  for (const piece of middle) {
    at = text.indexOf(piece, at);
    if (at < 0) {
      return false;
    }
    at += piece.length;
  }
  return text.length - at >= last.length && text.endsWith(last);
}
