/**
 * The tabs that clients open for themselves: in a group of their own, and never with the focus.
 */

const TITLE = "OpenTabs";
const BLANK_WITHIN = 10_000; // ms; an empty page takes a few, and seconds on a busy machine
const UNANSWERED = "unansweredTabs";
const FIRST_LOOK = 100; // ms after a page is shown in a tab; each pause is twice as long
const LOOKS = 7; // the last is 12.7 s after the page is shown

/** @type {Map<number, PromiseWithResolvers<void>>} */
const loading = new Map();

/** @type {Set<number>} tabs that the server does not know of yet */
const unanswered = new Set();

/** @type {Promise<unknown>} */
let last = Promise.resolve();

/** Closes the tabs of a worker that died before it could tell the server of them. */
export function restore() {
  last = closeUnanswered().catch((error) => {
    console.warn("OpenTabs: cannot close the tabs of an earlier worker:", error);
  });
}

async function closeUnanswered() {
  const { [UNANSWERED]: left } = await chrome.storage.session.get(UNANSWERED);
  if (Array.isArray(left) && left.length > 0) {
    await Promise.all(left.map(close));
    await storeUnanswered(); // or each worker after this one would close them again
  }
}

/**
 * Handles the end of a tab's loading.
 * @param {number} tabId
 */
export function handleLoaded(tabId) {
  loading.get(tabId)?.resolve();
}

/**
 * Handles the end of a tab.
 * @param {number} tabId
 */
export function handleRemoved(tabId) {
  loading.get(tabId)?.reject(new Error("the tab was closed"));
}

/**
 * Opens an empty tab in the group; call `handleAnswered` once the server knows it.
 * @returns {Promise<number>} its id
 */
export function open() {
  // One after the other, or each of the first few would create a group.
  const opened = last.then(openNext);
  last = opened.catch(() => undefined);
  return opened;
}

/**
 * Handles the sending of the answer that names a new tab, or that tab's end.
 * @param {number} tabId
 */
export function handleAnswered(tabId) {
  unanswered.delete(tabId);
  return storeUnanswered();
}

async function storeUnanswered() {
  try {
    await chrome.storage.session.set({ [UNANSWERED]: [...unanswered] });
  } catch (error) {
    console.warn("OpenTabs: cannot store which tabs are new:", error);
  }
}

/**
 * Shows a page in an empty tab. If the tab's process ends just before, as when Chrome shares it with
 * another new tab that leaves it, Chrome loses the page without an error or an event. Chrome must
 * not discard the tab to save memory: it would get another id, and its client would lose it.
 * @param {number} tabId
 * @param {string} url
 */
export async function show(tabId, url) {
  try {
    await chrome.tabs.update(tabId, { url, autoDiscardable: false });
    for (let look = 0; look < LOOKS; look++) {
      await new Promise((resolve) => setTimeout(resolve, FIRST_LOOK * 2 ** look));
      const tab = await chrome.tabs.get(tabId);
      if (tab.status === "complete" || tab.url !== undefined) {
        return; // the URL of an empty page is kept from extensions
      }
      if (tab.status === "unloaded") {
        await chrome.tabs.update(tabId, { url });
      }
    }
  } catch (error) {
    console.warn("OpenTabs: cannot show a page in a new tab:", error); // which was closed
  }
}

/** @param {number} tabId */
export async function close(tabId) {
  try {
    await chrome.tabs.remove(tabId);
  } catch {
    // It is closed already.
  }
}

async function openNext() {
  const [group] = await groups();
  const windowId = group?.windowId ?? (await normalWindow());
  const tab =
    windowId === undefined
      ? (await chrome.windows.create({ url: "about:blank", focused: false }))?.tabs?.[0]
      : await chrome.tabs.create({ url: "about:blank", active: false, windowId });
  if (tab?.id === undefined) {
    throw new Error("the browser opened no tab");
  }
  unanswered.add(tab.id);
  await storeUnanswered();
  try {
    await untilLoaded(tab.id);
  } catch (error) {
    await close(tab.id);
    await handleAnswered(tab.id);
    throw error;
  }
  try {
    await put(tab.id, tab.windowId, group?.id);
  } catch (error) {
    console.warn("OpenTabs: cannot group a tab:", error); // it is as good without
  }
  return tab.id;
}

/**
 * Waits for the empty page, which would otherwise replace the one that is shown next.
 * @param {number} tabId
 * @throws {Error} if it does not load
 */
async function untilLoaded(tabId) {
  /** @type {PromiseWithResolvers<void>} */
  const done = Promise.withResolvers();
  const timer = setTimeout(() => {
    done.reject(new Error("the browser is too busy to load an empty page"));
  }, BLANK_WITHIN);
  loading.set(tabId, done);
  try {
    chrome.tabs.get(tabId).then(({ status }) => {
      if (status === "complete") {
        done.resolve();
      }
    }, done.reject);
    await done.promise;
  } finally {
    clearTimeout(timer);
    loading.delete(tabId);
  }
}

/** Not every Chromium has groups. */
async function groups() {
  return (await chrome.tabGroups?.query({ title: TITLE })) ?? [];
}

async function normalWindow() {
  try {
    return (await chrome.windows.getLastFocused({ windowTypes: ["normal"] })).id;
  } catch {
    return undefined; // no such window is open
  }
}

/**
 * @param {number} tabId
 * @param {number} windowId
 * @param {number | undefined} known the group, if there is one
 */
async function put(tabId, windowId, known) {
  if (known !== undefined) {
    await chrome.tabs.group({ tabIds: tabId, groupId: known });
    return;
  }
  const groupId = await chrome.tabs.group({ tabIds: tabId, createProperties: { windowId } });
  await chrome.tabGroups.update(groupId, { title: TITLE });
}
