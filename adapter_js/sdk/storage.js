/** @typedef {"localStorage" | "sessionStorage"} Area */

/**
 * Calls `use` with the storage and returns its value.
 *
 * @template T
 * @param {Area} area
 * @param {(storage: Storage) => T} use
 * @param {T} otherwise the value to return if storage is blocked or full
 * @returns {T}
 */
function withStorage(area, use, otherwise) {
  try {
    return use(window[area] ?? recover(area));
  } catch {
    return otherwise;
  }
}

/**
 * Some sites delete `window.localStorage` so that scripts cannot read it. A new window still has
 * the getter, and that works on this window.
 *
 * @param {Area} area
 * @returns {Storage}
 */
function recover(area) {
  const frame = document.createElement("iframe");
  document.documentElement.append(frame);
  try {
    const other = /** @type {Window} */ (frame.contentWindow);
    const { get } = /** @type {PropertyDescriptor} */ (
      Object.getOwnPropertyDescriptor(other, area)
    );
    return /** @type {() => Storage} */ (get).call(window);
  } finally {
    frame.remove();
  }
}

/**
 * @param {string} key
 * @returns {string | null} null when there is none, or the page has no storage
 */
export function getLocalStorage(key) {
  return withStorage("localStorage", (storage) => storage.getItem(key), null);
}

/**
 * @param {string} key
 * @param {string} value
 * @returns {boolean} whether it is stored
 */
export function setLocalStorage(key, value) {
  return withStorage("localStorage", (storage) => store(storage, key, value), false);
}

/**
 * @param {string} key
 * @returns {boolean} whether it is not, or no longer, stored
 */
export function removeLocalStorage(key) {
  return withStorage("localStorage", (storage) => discard(storage, key), false);
}

/**
 * @param {string} key
 * @returns {string | null} null when there is none, or the page has no storage
 */
export function getSessionStorage(key) {
  return withStorage("sessionStorage", (storage) => storage.getItem(key), null);
}

/**
 * @param {string} key
 * @param {string} value
 * @returns {boolean} whether it is stored
 */
export function setSessionStorage(key, value) {
  return withStorage("sessionStorage", (storage) => store(storage, key, value), false);
}

/**
 * @param {string} key
 * @returns {boolean} whether it is not, or no longer, stored
 */
export function removeSessionStorage(key) {
  return withStorage("sessionStorage", (storage) => discard(storage, key), false);
}

/**
 * Finds the first matching entry of `localStorage`, for keys that contain an id or a hash.
 *
 * @param {(key: string, value: string) => unknown} predicate its exceptions are passed on
 * @returns {{key: string, value: string} | null}
 */
export function findLocalStorageEntry(predicate) {
  const entries = withStorage("localStorage", entriesOf, []);
  return entries.find(({ key, value }) => predicate(key, value)) ?? null;
}

/**
 * @param {Storage} storage
 * @param {string} key
 * @param {string} value
 */
function store(storage, key, value) {
  storage.setItem(key, value);
  return true;
}

/**
 * @param {Storage} storage
 * @param {string} key
 */
function discard(storage, key) {
  storage.removeItem(key);
  return true;
}

/** @param {Storage} storage */
function entriesOf(storage) {
  const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? "");
  return keys.map((key) => ({ key, value: storage.getItem(key) ?? "" }));
}
