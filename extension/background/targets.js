/**
 * Maps tabs to targets of Chrome's debugging protocol, by which Playwright knows its pages.
 */

/**
 * Rejects without the permission `debugger`.
 * @returns {Promise<{tabId: number, targetId: string, active: boolean, lastUsed: number}[]>}
 */
export async function targets() {
  const [found, open] = await Promise.all([chrome.debugger.getTargets(), chrome.tabs.query({})]);
  const pages = found.filter(({ type }) => type === "page");
  const ids = new Map(pages.map(({ tabId, id }) => [tabId, id]));
  return open.flatMap(({ id, active, lastAccessed = 0 }) => {
    const targetId = ids.get(id);
    return id === undefined || targetId === undefined
      ? []
      : [{ tabId: id, targetId, active, lastUsed: lastAccessed }];
  });
}
