/**
 * The key that this page's requests have, besides the cookie. The cookie goes to every port of this host; what
 * a page stores is only for pages of its own.
 */

const NAME = "opentabs-console";

/**
 * Takes the key that came with the URL, once. Returns a function that returns the key; empty if this browser was
 * never let in. Another window may have brought a new one, with a new cookie.
 */
export function ownKey() {
  const given = /^#key=([\w-]+)$/.exec(location.hash)?.[1];
  if (given !== undefined) {
    try {
      localStorage.setItem(NAME, given);
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
