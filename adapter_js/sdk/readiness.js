import { notifyHost } from "./host.js";

/**
 * Makes the host call `isReady()` again now instead of within the next 30 s, for example when the
 * user has signed in or out.
 */
export function notifyReadinessChanged() {
  notifyHost("_readinessNonce", { type: "opentabs:readiness-changed" });
}
