/** Forwards text from the Port to the page, and back. */
(() => {
  const port = chrome.runtime.connect();
  port.onMessage.addListener((detail) => {
    document.dispatchEvent(new CustomEvent("floor:down", { detail }));
  });
  document.addEventListener("floor:up", (event) => {
    port.postMessage(/** @type {CustomEvent<string>} */ (event).detail);
  });
})();
