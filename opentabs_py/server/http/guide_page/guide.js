/**
 * Shows whether the extension has connected, and the next steps.
 *
 * @typedef {{name: string, status: "ready" | "unavailable" | "closed", startPage: string | null}} Plugin
 * @typedef {{browsers: string[], directory: string, mcpUrl: string, plugins: Plugin[]}} State
 */

const LOOK_AGAIN = 1000; // ms
const COPIED_FOR = 2000; // ms

const STATUS = { ready: "ready", unavailable: "open, not ready", closed: "no tab open" };

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found;
}

/**
 * Set an element's text, and leave it alone if it has it: screen readers read what changes.
 * @param {Element} target
 * @param {string} text
 */
function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/**
 * @param {"waiting" | "connected" | "gone"} state
 * @param {string} text
 */
function showState(state, text) {
  element("state").dataset.state = state;
  write(element("state-text"), text);
  element("restart").hidden = state !== "gone";
  element("steps").classList.toggle("done", state === "connected");
  element("next").hidden = state !== "connected";
}

/** @param {Plugin} plugin */
function pluginItem({ name, status, startPage }) {
  const item = document.createElement("li");
  const title = document.createElement(startPage === null ? "span" : "a");
  title.textContent = name;
  if (title instanceof HTMLAnchorElement && startPage !== null) {
    title.href = startPage;
    title.target = "_blank";
  }
  const shown = document.createElement("span");
  shown.className = `status ${status}`;
  shown.textContent = STATUS[status];
  item.append(title, " ", shown);
  return item;
}

let plugins = "";

/** @param {State} state */
function show(state) {
  write(element("directory"), state.directory);
  write(element("mcp"), state.mcpUrl);
  const { browsers } = state;
  if (browsers.length > 0) showState("connected", `Connected: ${browsers.join(", ")}`);
  else showState("waiting", "Not connected yet. This page changes as soon as it is.");
  const described = JSON.stringify(state.plugins);
  if (described !== plugins) {
    plugins = described; // rebuilt only if it has changed, because a link in it may have the focus
    element("sites").hidden = state.plugins.length === 0;
    element("plugins").replaceChildren(...state.plugins.map(pluginItem));
  }
}

async function look() {
  try {
    const answer = await fetch("state");
    show(await answer.json());
  } catch {
    showState("gone", "The server is not running. Start it again:");
  }
  setTimeout(look, LOOK_AGAIN);
}

/** @param {HTMLButtonElement} button */
async function copy(button) {
  const source = element(button.dataset.copies ?? "");
  try {
    await navigator.clipboard.writeText(source.textContent ?? "");
  } catch {
    getSelection()?.selectAllChildren(source); // to be copied by hand
    return;
  }
  if (button.classList.contains("copied")) return;
  const label = [...button.childNodes];
  button.replaceChildren("Copied");
  button.classList.add("copied");
  setTimeout(() => {
    button.replaceChildren(...label);
    button.classList.remove("copied");
  }, COPIED_FOR);
}

for (const button of document.querySelectorAll("button")) {
  button.addEventListener("click", () => copy(button));
}
look();

export {};
