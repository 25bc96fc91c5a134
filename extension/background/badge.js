/**
 * The icon's state: whether the server is connected, and how many calls run or wait for the user.
 */

/** @import { ActivityParams } from "../protocol.js" */

const RUNNING = "#2563eb";
const WAITING = "#b45309"; // the user is asked
const MOST = 999; // four characters fit

/**
 * The connection has changed; nothing runs until the server says so.
 * @param {string} state
 */
export function showState(state) {
  chrome.action.setTitle({ title: `OpenTabs: ${state}` });
  chrome.action.setBadgeText({ text: "" });
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
