/**
 * The key that this page's requests have, besides the cookie. The cookie goes to every port of this host; what
 * a page stores is only for pages of its own.
 */

const NAME = "opentabs-console";

/** Returns the key; empty if this browser was never let in. A new one comes with the URL, once. */
export function ownKey() {
  const given = /^#key=([\w-]+)$/.exec(location.hash)?.[1];
  try {
    if (given !== undefined) localStorage.setItem(NAME, given);
    return localStorage.getItem(NAME) ?? "";
  } catch {
    return given ?? ""; // this browser stores nothing, so a reload needs a new URL
  } finally {
    if (given !== undefined) history.replaceState(null, "", location.pathname);
  }
}
