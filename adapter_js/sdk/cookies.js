/**
 * Returns a cookie that scripts can read. HttpOnly cookies cannot be read, but `fetchFromPage`
 * sends them.
 *
 * @param {string} name
 * @returns {string | null} the decoded value; null if there is none
 */
export function getCookie(name) {
  const prefix = `${name}=`;
  const found = document.cookie.split("; ").find((pair) => pair.startsWith(prefix));
  return found === undefined ? null : decode(found.slice(prefix.length));
}

/** @param {string} value */
function decode(value) {
  try {
    return decodeURIComponent(value);
  } catch {
    return value; // a stray % means that it was never encoded
  }
}
