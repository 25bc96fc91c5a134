/**
 * Runs first in a document: makes a realm for the runtime that no script of the page has touched,
 * and puts into it the node that relay and runtime talk on.
 *
 * A page can reach the Window of a document before the document is there: Chrome keeps the Window
 * of the blank page that `window.open()` returns for the page that replaces it. So builtins of that
 * Window may be the opener's. Those of a frame that is made here are not, and the runtime finds it
 * by an index of Window, which no page can redefine. The relay, which runs after the runtime,
 * removes the frame before any script of the page runs.
 */
(() => {
  const frame = /** @type {HTMLIFrameElement} */ (
    document.createElementNS("http://www.w3.org/1999/xhtml", "iframe")
  );
  // A lazy frame has its empty document at once, loads nothing, and fires no event.
  frame.loading = "lazy";
  frame.src = "https://opentabs.invalid/";
  document.documentElement.append(frame);
  const inner = frame.contentDocument;
  if (inner === null) {
    frame.remove(); // a sandboxed page: its frames are of another origin
    return;
  }
  // No page can define a custom element of this name: it has no hyphen.
  const node = document.createElement("opentabs");
  inner.documentElement.append(node);
  /** @type {any} */ (globalThis).openTabsRealm = { frame, node };
})();
