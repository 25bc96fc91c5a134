/**
 * Runs first in a document: creates a realm for the runtime that no script of the page has touched,
 * with the node that relay and runtime communicate on.
 *
 * A page can access the Window of a document before the document exists: when a page replaces the
 * blank one that `window.open()` returned, Chrome keeps the Window. So the builtins of that Window
 * may be the opener's. Those of a frame created here are not, and the runtime finds the frame by
 * its index on Window, which no page can redefine. The relay, which runs after the runtime, removes
 * the frame before any script of the page runs.
 */
(() => {
  const frame = /** @type {HTMLIFrameElement} */ (
    document.createElementNS("http://www.w3.org/1999/xhtml", "iframe")
  );
  // A lazy frame has an empty document at once, loads nothing, and fires no event.
  frame.loading = "lazy";
  frame.src = "https://opentabs.invalid/";
  document.documentElement.append(frame);
  const inner = frame.contentDocument;
  if (inner === null) {
    frame.remove(); // a sandboxed page: its frames have another origin
    return;
  }
  // No page can define a custom element of this name: it has no hyphen.
  const node = document.createElement("opentabs");
  inner.documentElement.append(node);
  /** @type {any} */ (globalThis).openTabsRealm = { frame, node };
})();
