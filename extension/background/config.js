/**
 * Where the server is, and the secret that shows it who we are. The server writes both beside the
 * extension.
 *
 * @typedef {{server: string, secret: string}} Config
 */

/**
 * Read again each time, because a server started later may have written another port.
 * @returns {Promise<Config>}
 */
export async function readConfig() {
  const answer = await fetch(chrome.runtime.getURL("config.json"), { cache: "no-store" });
  return answer.json();
}
