import { tellHost } from "./host.js";

/**
 * Has `isReady()` asked again now, rather than after its next interval of up to 30 s: call it when
 * the user has signed in or out, say.
 */
export function notifyReadinessChanged() {
  tellHost("_readinessNonce", { type: "opentabs:readiness-changed" });
}
