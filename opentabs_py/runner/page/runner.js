/**
 * The page of `opentabs test --ui`: the run as a whole on top, the tests below.
 */

/** @import {LinkState} from "./link.js" */
/** @import {TestRow, TestUpdate} from "./test_store.js" */

import { countGroups, drawMeter, groupOf, haveResults, isRunning } from "./counts.js";
import { byId, h, plural, write } from "./dom.js";
import { ownKey } from "./key.js";
import { Link, whyFailed } from "./link.js";
import { Router } from "./router.js";
import { sign } from "./signs.js";
import { TestStore } from "./test_store.js";
import { testsView } from "./tests.js";
import { Turn } from "./turn.js";
import { duration } from "./viewer/model.js";

/** @type {Record<LinkState, string>} */
const STATES = {
  connecting: "Connecting",
  live: "Live",
  gone: "opentabs test --ui is not running",
  "signed out": "Run opentabs test --ui",
};

const store = new TestStore();
// Screenshots are loaded with the key as well, because they show what is in the pages.
const link = new Link({ key: ownKey(), loadsWithKey: true });
const router = new Router("tests");

/**
 * @param {string} path
 * @param {unknown} [body]
 */
async function post(path, body = {}) {
  return link.post(path, body).catch(() => {}); // the state says that the server is gone
}

/** @param {string[]} tests */
function run(tests) {
  post("/run", { what: "these", these: tests });
}

/** @param {string} id */
async function describe(id) {
  try {
    return await link.get(`/test?id=${encodeURIComponent(id)}`);
  } catch (error) {
    throw new Error(whyFailed(error));
  }
}

const view = testsView({
  store,
  describe,
  load: (image, { file }) => link.load(image, `/screenshots/${file}`),
  go: router.go,
  run,
  resume: (pause) => post("/resume", { pause }),
});

// --- the run as a whole ---

const all = h("button", { type: "button", class: "primary" }, sign("run"), "Run all");
const failed = h("button", { type: "button" }, sign("again"), h("span", {}, "Run failed"));
const stop = h("button", { type: "button" }, sign("stop"), "Stop");
all.addEventListener("click", () => post("/run", { what: "all" }));
failed.addEventListener("click", () => post("/run", { what: "failed" }));
stop.addEventListener("click", () => post("/stop"));
byId("run-buttons").append(all, failed, stop);
/** @type {(HTMLButtonElement | HTMLInputElement)[]} */
const controls = [all, failed, stop]; // which need the server

/**
 * @param {"watches" | "pauses"} name
 * @param {string} text
 * @returns {(is: boolean) => void} shows what the server says
 */
function toggle(name, text) {
  const box = h("input", { type: "checkbox", checked: true });
  // Until the server has received a click, what it says is older than the click.
  let waiting = 0;
  box.addEventListener("change", async () => {
    waiting += 1;
    const set = await post("/switch", { [name]: box.checked });
    waiting -= 1;
    Object.assign(store.status ?? {}, set);
  });
  controls.push(box);
  byId("switches").append(h("label", { class: "check" }, box, text));
  return (is) => {
    if (waiting === 0) box.checked = is;
  };
}

const showWatches = toggle("watches", "Run on change");
const showPauses = toggle("pauses", "Pause on failure");

/** @param {readonly TestRow[]} tests */
function showCounts(tests) {
  const counts = countGroups(tests);
  drawMeter(byId("meter"), counts);
  const bad = tests.filter((test) => ["failed", "error"].includes(groupOf(test))).length;
  failed.hidden = bad === 0;
  write(/** @type {Element} */ (failed.lastElementChild), `Run failed (${bad})`);
  const passed = counts.length > 0 && haveResults(tests);
  const sign_ = bad > 0 ? "✗ " : isRunning(tests) ? "… " : passed ? "✓ " : "";
  document.title = `${sign_}${store.status?.directory ?? ""} · tests`;
  return counts.map(({ text }) => text);
}

function showRun() {
  const { status, tests } = store;
  if (status === null) return;
  write(byId("title"), `Tests of ${status.directory}`);
  const isIdle = status.state === "idle";
  stop.hidden = isIdle;
  showWatches(status.watches);
  showPauses(status.pauses);
  const parts = [plural(tests.length, "test"), ...showCounts(tests)];
  if (status.state === "building") parts.push("building the plugin");
  if (isIdle) parts.push(`in ${duration(1000 * status.seconds)}`);
  if (status.why !== "") parts.push(status.why);
  if (!status.headed) parts.push("headless");
  byId("counts").ariaLive = isIdle ? "polite" : "off"; // read when the run ends, not at each test
  write(byId("counts"), parts.join(" · "));
  // Beside what is a status: screen readers read that whenever it changes.
  const seconds = Math.max(0, store.now() - status.started);
  write(byId("ticking"), status.state === "running" ? ` · ${duration(1000 * seconds)}` : "");
}

// --- what needs the reader ---

let noticed = "";

function showNotices() {
  const { status, tests } = store;
  if (status === null) return;
  const paused = tests.filter((test) => test.pause !== null);
  const shown = JSON.stringify([
    paused.map(({ id, pause }) => [id, pause]),
    status.problems,
    status.error,
    status.lost,
  ]);
  if (shown === noticed) return;
  noticed = shown;
  const notices = paused.map((test) => pauseNotice(test, status.headed, status.terminal));
  if (status.problems.length > 0) {
    const list = h("ul", {});
    for (const { place, why } of status.problems)
      list.append(h("li", {}, h("strong", {}, place), h("pre", {}, why)));
    notices.push(
      h(
        "section",
        { class: "faults", role: "alert", "aria-label": "The build" },
        h("h2", {}, "The plugin cannot be built, so no test runs"),
        list,
      ),
    );
  }
  if (status.error !== "") notices.push(h("p", { class: "notice", role: "alert" }, status.error));
  if (status.lost > 0)
    notices.push(h("p", { class: "notice" }, `This run lost ${plural(status.lost, "event")}.`));
  byId("notices").replaceChildren(...notices);
}

/**
 * @param {TestRow} test
 * @param {boolean} headed
 * @param {boolean} terminal
 */
function pauseNotice(test, headed, terminal) {
  const { pause } = test;
  const on = h("button", { type: "button", class: "primary" }, sign("on"), "Continue");
  on.addEventListener("click", () => {
    on.disabled = true;
    post("/resume", { pause });
  });
  const enter = terminal ? ", or press Enter in the terminal" : "";
  return h(
    "section",
    { class: "notice pause-notice", role: "alert", "aria-label": "A failure" },
    h(
      "p",
      {},
      h("a", { href: `#/tests/${encodeURIComponent(test.id)}` }, test.name || test.file),
      ` has failed. Its browser stays open${headed ? "" : " (without a window)"} until you continue${enter}.`,
    ),
    on,
  );
}

/** @param {LinkState} state */
function showState(state) {
  byId("state").dataset.state = state;
  write(byId("state-text"), STATES[state]);
  for (const each of controls) each.disabled = state !== "live";
  if (state !== "live") store.disconnect();
}

store.subscribe(() => {
  showRun();
  showNotices();
  router.update(new Set());
});
setInterval(showRun, 250); // how long it has taken
router.start({ tests: { view } });
link.follow((update) => store.apply(/** @type {TestUpdate} */ (update)), showState, new Turn());
