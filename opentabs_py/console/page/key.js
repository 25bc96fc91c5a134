/**
 * The key that this page's requests have, besides the cookie. The cookie goes to every port of this host; what
 * a page stores is only for pages of its own.
 */

const NAME = "opentabs-console";
// Of windows that were opened at once by URLs of their own, any may have set the cookie last.
const MOST_KEYS = 4;

/**
 * Takes the key that came with the URL, once. Returns a function that returns this browser's last keys, separated by
 * spaces; empty if it was never let in. Another window may have brought a new one, with a new cookie.
 */
export function ownKey() {
  const given = /^#key=([\w-]+)$/.exec(location.hash)?.[1];
  if (given !== undefined) {
    try {
      const keys = `${given} ${localStorage.getItem(NAME) ?? ""}`.trim().split(" ");
      localStorage.setItem(NAME, keys.slice(0, MOST_KEYS).join(" "));
    } catch {
      // This browser stores nothing, so a reload needs a new URL.
    }
    history.replaceState(null, "", location.pathname);
  }
  return () => {
    try {
      return localStorage.getItem(NAME) ?? "";
    } catch {
      return given ?? "";
    }
  };
}
