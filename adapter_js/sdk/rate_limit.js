/**
 * Parses a `Retry-After` header: whole or fractional seconds, or an HTTP-date.
 *
 * @param {string | null | undefined} value
 * @returns {number | undefined} ms from now, never negative; undefined if it is not valid
 */
export function parseRetryAfterMs(value) {
  const text = value?.trim() ?? "";
  const ms = isNumber(text) ? Number(text) * 1000 : untilDate(text);
  return ms === undefined || !Number.isFinite(ms) ? undefined : Math.max(0, Math.round(ms));
}

/**
 * @typedef {object} RateLimit
 * @property {number} [limit] how many requests a window allows
 * @property {number} [remaining] how many are left
 * @property {number} [resetMs] ms from now until the window ends
 */

/**
 * Reads a site's rate limit from `RateLimit-*`, `X-RateLimit-*` or `X-Rate-Limit-*` with
 * `Limit`, `Remaining` and `Reset` (seconds from now, seconds or milliseconds since 1970, or a
 * date), or from the single header of the later drafts, as in `RateLimit: "default";r=50;t=30`.
 *
 * @param {Headers | {headers: Headers}} source headers, or an object with headers, such as a
 *   `Response`
 * @returns {RateLimit} `{}` if there are no such headers
 */
export function parseRateLimitHeader(source) {
  const headers = source instanceof Headers ? source : source.headers;
  /** @param {string} name */
  const split = (name) =>
    ["ratelimit", "x-ratelimit", "x-rate-limit"]
      .map((prefix) => headers.get(`${prefix}-${name}`))
      .find((value) => value !== null);
  const joined = headers.get("ratelimit");
  const policy = headers.get("ratelimit-policy");
  const found = {
    limit: number(split("limit")) ?? member(joined, "limit") ?? member(policy, "q"),
    remaining: number(split("remaining")) ?? member(joined, "r") ?? member(joined, "remaining"),
    resetMs: untilReset(split("reset") ?? text(member(joined, "t") ?? member(joined, "reset"))),
  };
  const known = Object.entries(found).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known);
}

/** @param {string | undefined} value */
function untilReset(value) {
  const seconds = number(value);
  if (seconds === undefined) {
    const ms = untilDate(value ?? "");
    return ms === undefined ? undefined : Math.max(0, ms);
  }
  // No window is 30 years long, so a number this large is a time since 1970.
  const epoch = seconds > 1e12 ? seconds : seconds * 1000;
  return seconds > 1e9 ? Math.max(0, Math.round(epoch - Date.now())) : Math.round(seconds * 1000);
}

/** @param {string} text a date; not a bare number, although Date accepts one as a year */
function untilDate(text) {
  const time = /^[A-Z]|^\d{4}-\d\d-\d\d/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time - Date.now();
}

/**
 * @param {string | null} value a header such as `"default";r=50;t=30` or `limit=100, reset=9`
 * @param {string} key
 */
function member(value, key) {
  const found = value?.match(new RegExp(`(?:^|[;,\\s])${key}=(\\d+)`));
  return found ? Number(found[1]) : undefined;
}

/** @param {string | null | undefined} value for example `100` or, with policies, `100, 100;w=60` */
function number(value) {
  const first = value?.split(/[,;]/, 1)[0]?.trim() ?? "";
  return isNumber(first) ? Number(first) : undefined;
}

/** @param {string} text */
function isNumber(text) {
  return /^\d+(\.\d+)?$/.test(text);
}

/** @param {number | undefined} value */
function text(value) {
  return value === undefined ? undefined : String(value);
}
