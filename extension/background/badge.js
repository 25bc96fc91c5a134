/**
 * The icon's state: whether the server is connected, and how many calls run or wait for the user.
 */

/** @import { ActivityParams } from "../protocol.js" */

/** What `storage.session` has, for the side panel: see `showState`. */
export const TROUBLE = "trouble";

const RUNNING = "#2563eb";
const WAITING = "#b45309"; // the user is asked
const MOST = 999; // four characters fit

/**
 * The connection has changed; nothing runs until the server says so.
 * @param {"connected" | "not connected" | "not configured"} state
 * @param {string} why if that is known: the side panel shows it, too
 */
export function showState(state, why = "") {
  const text = why === "" ? state : `${state}: ${why}`;
  chrome.action.setTitle({ title: `OpenTabs: ${text}` });
  chrome.action.setBadgeText({ text: "" });
  chrome.storage.session.set({ [TROUBLE]: why === "" ? "" : text }).catch((error) => {
    console.warn("OpenTabs: the side panel will not know why:", error);
  });
}

/** @param {ActivityParams} activity */
export function showActivity({ running, waiting }) {
  const count = running + waiting;
  const text = count === 0 ? "" : count > MOST ? `${MOST}+` : String(count);
  chrome.action.setBadgeText({ text });
  chrome.action.setBadgeTextColor({ color: "#ffffff" });
  chrome.action.setBadgeBackgroundColor({ color: waiting > 0 ? WAITING : RUNNING });
  const parts = [
    ...(running > 0 ? [running === 1 ? "1 call runs" : `${running} calls run`] : []),
    ...(waiting > 0
      ? [waiting === 1 ? "1 call waits for you" : `${waiting} calls wait for you`]
      : []),
  ];
  chrome.action.setTitle({ title: `OpenTabs: ${parts.join(", ") || "connected"}` });
}
