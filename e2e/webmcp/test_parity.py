"""Our `document.modelContext` behaves like Chromium's own."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright

from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.config.assets import extension_dir
from opentabs_py.config.settings import load_settings

URL = "http://127.0.0.1/"
PAGE = """\
<!doctype html><title>Fields</title><body>
<form id="all" toolname="all" tooltitle="All" tooldescription="Has all fields" toolautosubmit>
  <label>Who <input name="who" required toolparamdescription="Name" pattern="[A-Z].*"></label>
  <label for="city">City</label><input id="city" name="city">
  <input name="seats" type="number" min="1" max="9"><input name="any" type="number" step="any">
  <input name="volume" type="range" step="0.5"><textarea name="text"></textarea>
  <select name="room" required><option value="a">Alpha</option><option>Beta</option></select>
  <select name="rooms" multiple><option value="a">Alpha</option><option>Beta</option></select>
  <input type="checkbox" name="quiet" value="yes">
  <input type="checkbox" name="extras" value="1"><input type="checkbox" name="extras" value="2">
  <input type="radio" name="size" value="s" id="s"><label for="s">Small</label>
  <input type="radio" name="size" value="l">
  <input type="email" name="mail"><input type="color" name="color"><input type="date" name="day">
  <input type="time" name="time"><input type="datetime-local" name="at">
  <input type="month" name="month"><input type="week" name="week"><input type="file" name="file">
  <input type="hidden" name="hidden" value="9"><input name="off" disabled>
  <input name="fixed" readonly><button name="go" value="1">Go</button>
</form>
<form toolname="silent"><input name="a"></form>
<form id="manual" toolname="manual" tooldescription="Is submitted by hand">
  <input name="a"><button>Go</button>
</form>
<form toolname="dead" tooldescription="Has no button"><input name="a"></form>
<script>
addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = [...new FormData(event.target)].filter(([, value]) => typeof value === "string");
  if (event.agentInvoked) event.respondWith({ fields });
});
</script>
"""
SCRIPT = r"""async () => {
  const context = document.modelContext;
  const seen = {};
  const look = async (name, act) => {
    try {
      seen[name] = (await act()) ?? "undefined";
    } catch (error) {
      const isDom = error instanceof DOMException;
      seen[name] = isDom ? `${error.name}: ${error.message}` : `${error?.name ?? error}`;
    }
  };
  const events = [];
  for (const type of ["toolactivated", "toolcancel"]) {
    context.addEventListener(type, ({ toolName }) => events.push(`${type} ${toolName}`));
  }
  const register = (more, options) =>
    context.registerTool({ name: "t", description: "d", execute() {}, ...more }, options);
  const annotations = { readOnlyHint: true, other: 1 };
  const inputSchema = { type: "object", properties: { a: { type: "number" } } };
  await look("whole", () => register({ name: "whole", title: "T", annotations, inputSchema }));
  await look("bare", () => register({ name: "bare" }));
  await look("again", () => register({ name: "bare" }));
  await look("as a form", () => register({ name: "all" }));
  for (const name of ["", "a b", "a.b-c_d", "ü", "x".repeat(129)]) {
    await look(`name ${name}`, () => register({ name }));
  }
  await look("no description", () => register({ name: "n", description: undefined }));
  await look("empty description", () => register({ name: "n", description: "" }));
  await look("no function", () => register({ name: "n", execute: undefined }));
  await look("schema as text", () => register({ name: "n", inputSchema: "{}" }));
  await look("schema of nothing", () => register({ name: "n", inputSchema: { toJSON() {} } }));
  await look("aborted", () => register({ name: "n" }, { signal: AbortSignal.abort("why") }));
  const values = [1.5, NaN, 12n, null, undefined, "text", { a: [1] }, new Map([[1, 2]]), () => 1];
  let value;
  await register({ name: "value", execute: () => value });
  await register({ name: "fail", execute: () => { throw new Error("secret") } });
  await register({ name: "hang", execute: () => new Promise(() => {}) });
  const tools = Object.fromEntries((await context.getTools()).map((tool) => [tool.name, tool]));
  seen.tools = Object.values(tools).map(({ window: own, ...tool }) => [own === window, tool]);
  for (const [index, each] of values.entries()) {
    value = each;
    await look(`value ${index}`, () => context.executeTool(tools.value, {}));
  }
  await look("fail", () => context.executeTool(tools.fail, {}));
  await look("text as input", () => context.executeTool(tools.value, "{}"));
  await look("stopped", () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort("enough"), 20);
    return context.executeTool(tools.hang, {}, { signal: stop.signal });
  });
  await look("form", () =>
    context.executeTool(tools.all, {
      who: "Ann", city: "Ulm", seats: 3, volume: 2.5, text: "x", room: "Beta", rooms: ["a"],
      quiet: true, extras: ["2"], size: "l", day: "2026-11-24",
    }));
  await look("stopped after its end", async () => {
    const stop = new AbortController();
    await context.executeTool(tools.value, {}, { signal: stop.signal });
    stop.abort("too late");
    return `${events.at(-1)}`;
  });
  const submissions = [];
  manual.addEventListener("submit", (event) => submissions.push(event.agentInvoked));
  const whenActive = (act) =>
    context.addEventListener("toolactivated", () => setTimeout(act), { once: true });
  await look("stopped form", () => {
    const stop = new AbortController();
    whenActive(() => stop.abort("enough"));
    return context.executeTool(tools.manual, { a: "1" }, { signal: stop.signal });
  });
  manual.elements[1].click();
  manual.elements[1].click();
  await look("form by hand, twice", () => {
    whenActive(() => {
      manual.elements[1].click();
      manual.elements[1].click();
    });
    return context.executeTool(tools.manual, { a: "2" });
  });
  manual.elements[1].click();
  seen.submissions = submissions;
  await look("wrong form", () => context.executeTool(tools.all, { who: "Ann", seats: 77 }));
  await look("unknown field", () => context.executeTool(tools.all, { nobody: 1 }));
  await look("no button", () => context.executeTool(tools.dead, { a: "1" }));
  await new Promise((resolve) => setTimeout(resolve, 50));
  return { ...seen, events };
}"""


async def answers(page: Page) -> dict[str, Any]:
    await page.route(URL, lambda route: route.fulfill(body=PAGE, content_type="text/html"))
    await page.goto(URL)
    await page.wait_for_function(
        "document.modelContext.getTools().then((tools) => tools.length === 3)"
    )
    found: dict[str, Any] = await page.evaluate(SCRIPT)
    return found


@pytest.mark.anyio
async def test_a_page_sees_no_difference(tmp_path: Path) -> None:
    chromium = configured_chromium(load_settings())
    seen: list[dict[str, Any]] = []
    async with async_playwright() as playwright:
        for kind in ("native", "polyfill"):
            context = await playwright.chromium.launch_persistent_context(
                tmp_path / kind,
                executable_path=chromium,
                args=["--enable-features=WebMCP"] if kind == "native" else [],
            )
            page = await context.new_page()
            if kind == "polyfill":
                script = extension_dir() / "content" / "model_context.js"
                await page.add_init_script(path=script)
            seen.append(await answers(page))
            await context.close()
    native, ours = seen
    assert len(native) > 30
    for name, answer in native.items():
        assert (name, ours[name]) == (name, answer)
