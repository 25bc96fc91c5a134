/**
 * A cookie that scripts may read; one that is HttpOnly goes along with `fetchFromPage`, unread.
 *
 * @param {string} name
 * @returns {string | null} its value, decoded; null when there is none
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
    return value; // a stray % says that it was never encoded
  }
}
