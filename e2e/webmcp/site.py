"""A page that registers its own tools, as its developer would write them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http

PAGE = """\
<!doctype html><title>TITLE</title><body>
<form toolname="book" tooldescription="Book a table" toolautosubmit id="book">
  <label>Name <input name="who" required toolparamdescription="Whose table"></label>
  <input name="seats" type="number" min="1" max="9">
  <select name="room"><option value="a">Alpha</option><option value="b">Beta</option></select>
  <input name="quiet" type="checkbox" value="yes">
  <button>Book</button>
</form>
<form toolname="confirm" tooldescription="A person has to press the button" id="confirm">
  <input name="text"><button>Confirm</button>
</form>
<script>
const runs = [];
const events = [];
const signals = {};
const off = new AbortController();
const context = document.modelContext;
for (const type of ["toolactivated", "toolcancel"]) {
  context.addEventListener(type, (event) => events.push([type, event.toolName]));
}
const object = (properties, required = []) => ({ type: "object", properties, required });
context.registerTool({
  name: "add",
  title: "Add two numbers",
  description: "Adds.",
  inputSchema: object({ a: { type: "number" }, b: { type: "number" } }, ["a", "b"]),
  annotations: { readOnlyHint: true },
  execute({ a, b }) {
    runs.push([a, b]);
    return { sum: a + b };
  },
}, { signal: off.signal });
context.registerTool({
  name: "count",
  description: "Counts, and says how far it is.",
  inputSchema: object({ to: { type: "integer" } }),
  async execute({ to = 3 }, { reportProgress }) {
    for (let i = 1; i <= to; i++) {
      reportProgress?.({ progress: i, total: to, message: `${i} of ${to}` });
    }
    return "counted";
  },
});
context.registerTool({
  name: "hang",
  description: "Never ends by itself.",
  inputSchema: object({ key: { type: "string" } }),
  execute({ key }, { signal }) {
    runs.push(key);
    signals[key] = signal;
    return new Promise((resolve) => (signals[`end ${key}`] = resolve));
  },
});
context.registerTool({
  name: "pay",
  description: "Pays.",
  annotations: { consequentialHint: true, untrustedContentHint: true },
  execute: () => runs.push("paid"),
});
let value = () => null;
context.registerTool({
  name: "value",
  description: "Returns what the test wants.",
  execute: () => value(),
});
addEventListener("submit", (event) => {
  if (!event.agentInvoked) return;
  event.preventDefault();
  const fields = Object.fromEntries(new FormData(event.target));
  const answer = fields.who === "Nobody" ? Promise.reject(new Error("no tables left"))
    : Promise.resolve({ fields });
  event.respondWith(answer);
});
</script>
"""

HOSTILE = """\
<script>
for (const holder of [Map, Array, String, Promise, EventTarget, Set]) {
  for (const name of Object.getOwnPropertyNames(holder.prototype)) {
    if (["constructor", "then", "length"].includes(name)) continue;
    try {
      holder.prototype[name] = () => { throw new Error("patched") };
    } catch {}
  }
}
JSON.stringify = JSON.parse = Reflect.apply = () => { throw new Error("patched") };
Object.prototype.then = undefined;
ModelContext.prototype.getTools = ModelContext.prototype.executeTool = undefined;
</script>
"""


@asynccontextmanager
async def serving_page() -> AsyncGenerator[str]:
    """Serve the page at every path; yield the address of the site."""

    async def page(request: Request) -> HTMLResponse:
        title = request.path_params["title"] or "tools"
        return HTMLResponse(PAGE.replace("TITLE", title) + (HOSTILE if title == "hostile" else ""))

    listener = bind("127.0.0.1", 0)
    app = Starlette(routes=[Route("/{title:path}", page)])
    async with serve_http(app, listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
