import { log, OpenTabsPlugin } from "@opentabs-dev/plugin-sdk";
import { attempt, broken, names, sum, wrapped } from "./tools.ts";

/** What the host and the page did to the plugin, in order; kept on the page, for the tests. */
function note(event: string): void {
  const page = globalThis as unknown as { probed?: string[] };
  page.probed = [...(page.probed ?? []), event];
}

class SdkProbe extends OpenTabsPlugin {
  readonly name = "sdk-probe";
  readonly displayName = "SDK probe";
  override readonly description = "Uses every function of the SDK once in a real page";
  readonly urlPatterns = ["http://127.0.0.1/*"];
  readonly tools = [attempt, names, sum, broken, wrapped];
  override async isReady() {
    return document.body.dataset["signedOut"] === undefined;
  }
  override onActivate() {
    note("activate");
    log.info("activated");
  }
  override onDeactivate() {
    note("deactivate");
    throw new Error("a hook that throws");
  }
  override teardown() {
    note("teardown");
  }
  override onNavigate(url: string) {
    note(`navigate ${new URL(url).hash}`);
  }
  override onToolInvocationStart(tool: string) {
    note(`start ${tool}`);
    throw new Error("a hook that throws");
  }
  override onToolInvocationEnd(tool: string, success: boolean, durationMs: number) {
    note(`end ${tool} ${success} ${durationMs >= 0}`);
  }
}

export default new SdkProbe();
