// The demo chat: channels, their history, and a panel that shows tools at work.
//
// The panel patches nothing, and the tools do not notify it. It watches the requests
// that leave this document (Resource Timing), and the server says in a Server-Timing
// header which page of how many each one fetched.

/** @typedef {{text: string, author: string, timestamp: string}} Message */
/** @typedef {{messages: Message[], totalPages: number, nextCursor?: string}} Page */

/** @param {string} id */
const $ = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * @param {string} tag
 * @param {string} className
 * @param {string} [text]
 */
function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/**
 * Call the site's API.
 * @param {string} path
 * @param {RequestInit} [options]
 */
async function api(path, options) {
  const response = await fetch(path, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.message);
  return body;
}

/** @param {string} channel */
const messagesPath = (channel) => `/api/channels/${encodeURIComponent(channel)}/messages`;

// --- history ---

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const calendar = new Intl.DateTimeFormat(undefined, {
  weekday: "long",
  day: "numeric",
  month: "long",
});

const SAME_BREATH = 10 * 60_000; // ms; messages further apart have their author named again

/** What is on show: a channel, from its newest message back to where `cursor` continues. */
class View {
  /** @type {string | undefined} */
  cursor = "";
  pages = 0;
  /** @type {Message | undefined} */
  newest;
  /** @type {Promise<void>} */
  #loading = Promise.resolve();

  /** @param {string} channel */
  constructor(channel) {
    this.channel = channel;
  }

  /**
   * Show pages of history up to one of them; the first is the newest.
   * @param {number} page
   */
  loadUpTo(page) {
    const before = this.#loading.catch(() => undefined); // its caller has seen the error
    this.#loading = before.then(async () => {
      while (this.pages < page && this.cursor !== undefined && view === this) await this.#older();
    });
    return this.#loading;
  }

  async #older() {
    const query = new URLSearchParams({ view: "1", cursor: this.cursor ?? "" });
    /** @type {Page} */
    const page = await api(`${messagesPath(this.channel)}?${query}`);
    if (view !== this) return;
    this.cursor = page.nextCursor;
    this.pages += 1;
    this.newest ??= page.messages[0];
    const list = element("ol", "page");
    list.dataset.page = String(this.pages);
    list.append(...rows(page.messages.toReversed()));
    const history = $("history");
    const fromBottom = history.scrollHeight - history.scrollTop;
    const newer = $("pages").firstElementChild?.firstElementChild;
    const lastDay = [...list.querySelectorAll(".day")].at(-1);
    if (newer?.className === "day" && newer.textContent === lastDay?.textContent) newer.remove();
    $("pages").prepend(list);
    $("beginning").hidden = this.cursor !== undefined || page.messages.length === 0;
    $("nothing").hidden = this.newest !== undefined;
    history.scrollTop = history.scrollHeight - fromBottom;
  }

  /** Show what was written since. */
  async refresh() {
    await this.#loading;
    /** @type {Page} */
    const page = await api(`${messagesPath(this.channel)}?view=1`);
    const known = this.newest;
    const isFresh = (/** @type {Message} */ one) => !known || one.timestamp > known.timestamp;
    const fresh = page.messages.filter(isFresh).toReversed();
    if (view !== this || fresh.length === 0) return;
    this.newest = fresh.at(-1);
    $("nothing").hidden = true;
    $("pages").lastElementChild?.append(...rows(fresh, known));
    $("history").scrollTop = $("history").scrollHeight;
    await showChannels();
  }
}

/** @type {View} */
let view;

/**
 * @param {Message[]} messages Oldest first.
 * @param {Message} [before] The one that stands above them.
 */
function rows(messages, before) {
  /** @type {HTMLElement[]} */
  const made = [];
  for (const message of messages) {
    const at = new Date(message.timestamp);
    const day = calendar.format(at);
    const newDay = before === undefined || calendar.format(new Date(before.timestamp)) !== day;
    if (newDay) made.push(element("li", "day", day));
    const row = element("li", "message");
    const pause = before === undefined ? 0 : at.getTime() - Date.parse(before.timestamp);
    const follows = !newDay && before?.author === message.author && pause < SAME_BREATH;
    row.classList.toggle("follows", follows);
    const time = element("time", "", clock.format(at));
    time.setAttribute("datetime", message.timestamp);
    row.append(
      element("span", `avatar tone-${tone(message.author)}`, message.author[0]),
      element("span", "author", message.author),
      time,
      element("span", "text", message.text),
    );
    made.push(row);
    before = message;
  }
  return made;
}

/** @param {string} author */
function tone(author) {
  let sum = 0;
  for (const letter of author) sum = (sum * 7 + letter.charCodeAt(0)) % 8;
  return sum;
}

async function showChannels() {
  const { channels } = await api("/api/channels");
  const items = channels.map((/** @type {{id: string, messages: number}} */ channel) => {
    const button = element("button", "");
    button.append(element("span", "", channel.id), element("span", "", String(channel.messages)));
    button.addEventListener("click", () => open(channel.id));
    if (channel.id === view.channel) {
      button.setAttribute("aria-current", "true");
      const plural = channel.messages === 1 ? "message" : "messages";
      $("channel-size").textContent = `${channel.messages} ${plural}`;
    }
    const item = element("li", "");
    item.append(button);
    return item;
  });
  $("channels").replaceChildren(...items);
}

/** @param {string} channel */
async function open(channel) {
  view = new View(channel);
  $("channel-name").textContent = channel;
  $("channel-size").textContent = "";
  $("pages").replaceChildren();
  $("beginning").hidden = true;
  $("nothing").hidden = true;
  await Promise.all([showChannels(), view.loadUpTo(2)]);
  $("history").scrollTop = $("history").scrollHeight;
}

$("history").addEventListener("scroll", () => {
  if ($("history").scrollTop < 400) view.loadUpTo(view.pages + 1);
});

$("composer").addEventListener("submit", async (event) => {
  event.preventDefault();
  const input = /** @type {HTMLInputElement} */ ($("text"));
  if (input.value.trim() === "") return;
  const body = JSON.stringify({ text: input.value });
  input.value = "";
  const headers = { "content-type": "application/json" };
  await api(`${messagesPath(view.channel)}?view=1`, { method: "POST", headers, body });
  await view.refresh();
});

// --- tools at work ---

const LOG_LENGTH = 200;

let exported = 0;

/**
 * @param {string} channel
 * @param {number} page
 * @param {number} total
 */
async function showExported(channel, page, total) {
  const panel = $("export");
  if (page === 1 || panel.hidden) startExport(channel, total);
  exported += 1;
  const complete = page === total;
  panel.classList.toggle("complete", complete);
  $("export-count").textContent = `${exported} of ${total}`;
  $("export-state").textContent = complete ? "Exported, every page" : `Fetched page ${page}`;
  $("cells").setAttribute("aria-valuenow", String(page));
  const cells = $("cells").children;
  cells[page - 1]?.classList.remove("next");
  cells[page - 1]?.classList.add("done");
  cells[page]?.classList.add("next");

  if (view.channel !== channel) open(channel);
  const shown = view;
  await shown.loadUpTo(page);
  const rowsOfPage = document.querySelector(`.page[data-page="${page}"]`);
  if (view !== shown || rowsOfPage === null) return;
  rowsOfPage.classList.add("exported", "fresh");
  rowsOfPage.scrollIntoView({ block: "end" });
  setTimeout(() => rowsOfPage.classList.remove("fresh"), 600);
}

/**
 * @param {string} channel
 * @param {number} total
 */
function startExport(channel, total) {
  exported = 0;
  $("idle").hidden = true;
  $("export").hidden = false;
  $("export-channel").textContent = `#${channel}`;
  $("cells").setAttribute("aria-valuemax", String(total));
  const cells = Array.from({ length: total }, (_, index) =>
    element("span", "cell", `${index + 1}`),
  );
  $("cells").replaceChildren(...cells);
  for (const list of document.querySelectorAll(".page.exported")) list.classList.remove("exported");
}

/** @param {PerformanceResourceTiming} entry */
function showRequest(entry) {
  const url = new URL(entry.name);
  const channel = /^\/api\/channels\/([^/]+)\/messages$/.exec(url.pathname)?.[1];
  if (channel === undefined || url.origin !== location.origin || url.searchParams.has("view")) {
    return;
  }
  const description = entry.serverTiming.find((timing) => timing.name === "page")?.description;
  const [page, total] = (description ?? "").split("/").map(Number);
  const refused = entry.responseStatus >= 400 || entry.responseStatus === 0;
  const what = refused
    ? `refused, ${entry.responseStatus}`
    : description
      ? `page ${description}`
      : "wrote";
  const line = element("li", refused ? "refused" : "");
  line.append(
    element("span", "", `#${channel} ${what}`),
    element("span", "", `${Math.round(entry.duration)} ms`),
  );
  $("idle").hidden = true;
  $("log").prepend(line);
  while ($("log").childElementCount > LOG_LENGTH) $("log").lastElementChild?.remove();
  if (refused) return;
  if (description) showExported(channel, page, total);
  else if (channel === view.channel) view.refresh();
}

start();

async function start() {
  await open("general");
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      showRequest(/** @type {PerformanceResourceTiming} */ (entry));
    }
  }).observe({ type: "resource", buffered: true });
}
