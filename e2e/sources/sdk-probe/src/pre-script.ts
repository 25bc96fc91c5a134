import { definePreScript } from "@opentabs-dev/plugin-sdk";

definePreScript(({ set, log }) => {
  set("beforeThePage", !("pageScriptRan" in globalThis));
  log.debug("the pre-script ran");
});
