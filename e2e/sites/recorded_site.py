"""A site to record: an API, GraphQL, a WebSocket, an event stream, and 200 secrets."""

import base64
import json
import random
import string
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

NAME = "notes"
GAP = 0.3  # s; between messages of the event stream and of the WebSocket
PAGES = 3
FIRST, LAST = "Wilhelmina", "Oakenshield"


@dataclass
class Secrets:
    """What no file of a recording may contain."""

    emails: list[str] = field(default_factory=list)
    phones: list[str] = field(default_factory=list)
    bearers: list[str] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)
    csrf: list[str] = field(default_factory=list)
    jwts: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    passwords: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def all(self) -> list[str]:
        return [secret for kind in vars(self).values() for secret in kind]


def plant(seed: int) -> Secrets:
    """Make two hundred secrets."""
    chance = random.Random(seed)

    def text(length: int, letters: str = string.ascii_letters + string.digits) -> str:
        return "".join(chance.choices(letters, k=length - 1)) + chance.choice(string.digits)

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    def phone(index: int) -> str:
        digits = [str(chance.randint(2, 9)), *(str(chance.randint(0, 9)) for _ in range(9))]
        a, b, c = "".join(digits[:3]), "".join(digits[3:6]), "".join(digits[6:])
        return (f"+44 {a} {b} {c}", f"({a}) {b}-{c}", f"{a}-{b}-{c}", f"+1{a}{b}{c}")[index % 4]

    tops = ("org", "net", "co.uk", "dev")
    return Secrets(
        emails=[f"{text(8).lower()}.{i}@{text(6).lower()}.{tops[i % 4]}" for i in range(44)],
        phones=[phone(index) for index in range(32)],
        bearers=[text(40) for _ in range(20)],
        cookies=[text(24) for _ in range(20)],
        csrf=[text(32, string.hexdigits.lower()) for _ in range(24)],
        jwts=[
            f"{part({'alg': 'HS256'})}.{part({'sub': text(9), 'n': i})}.{text(43)}"
            for i in range(20)
        ],
        keys=[text(28) for _ in range(20)],
        passwords=[f"{text(6)}!{text(5)}" for _ in range(16)],
        names=[FIRST, LAST, f"{FIRST} {LAST}", f"{FIRST[0].lower()}{LAST.lower()}"],
    )


SECRETS = plant(seed=20)

SCRIPT = """
const secrets = SECRETS;
const get = (url, options) => fetch(url, options).then((answer) => answer.text());
async function run() {
  localStorage.setItem("authToken", secrets.keys[0]);
  localStorage.setItem("state", JSON.stringify({ user: { email: secrets.emails[0] } }));
  await get("/api/me");
  await get("/api/contacts");
  for (const bearer of secrets.bearers) {
    await get("/api/ping", { headers: { Authorization: `Bearer ${bearer}` } });
  }
  for (const key of secrets.keys) {
    await get(`/api/ping?api_key=${encodeURIComponent(key)}`, { headers: { "X-Api-Key": key } });
  }
  for (const password of secrets.passwords) {
    await get("/api/ping", {
      method: "POST",
      body: new URLSearchParams({ user: "someone", password }),
    });
  }
  for (const csrf of secrets.csrf.slice(8)) {
    await get("/api/ping", { method: "POST", headers: { "X-CSRF-Token": csrf }, body: "{}" });
  }
  document.body.dataset.done = "yes";
}
run();
"""


def page(script: str = "") -> str:
    s = SECRETS
    tokens = s.csrf
    fields = "".join(f'<input type="hidden" name="csrf_token" value="{t}">' for t in tokens[1:8])
    meta = "".join(f'<meta name="csrf-token" content="{t}">' for t in tokens[:1])
    links = "".join(f'<a href="mailto:{e}">{e.replace("@", "&#64;")}</a>' for e in s.emails[30:36])
    state = {"viewer": {"displayName": s.names[2], "login": s.names[3]}, "csrfToken": tokens[4]}
    return (
        f"<!doctype html><html><head><title>Notes</title>{meta}</head><body>"
        f"<p>Hello {s.names[0]}!</p><form>{fields}</form>{links}"
        f"<script>window.state = {json.dumps(state)};</script>"
        f'<script type="application/json">{json.dumps({"jwts": s.jwts[:5]})}</script>'
        f"{script}</body></html>"
    )


class Site:
    """The site, and the writes that it received."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.requests: list[str] = []

    def app(self) -> Starlette:
        routes = [
            Route("/", self.home),
            Route("/old", lambda _: RedirectResponse("/#part")),
            Route("/secrets", lambda _: HTMLResponse(page('<script src="/app.js"></script>'))),
            Route("/app.js", self.script),
            Route("/api/me", self.me),
            Route("/api/contacts", self.contacts),
            Route("/api/ping", self.ping, methods=["GET", "POST"]),
            Route(
                "/api/moved", lambda request: RedirectResponse(f"/api/items?{request.url.query}")
            ),
            Route("/api/away", lambda _: RedirectResponse("/sign-in")),
            Route("/api/gone", self.gone),
            Route("/api/items", self.items),
            Route("/api/items", self.add, methods=["POST"]),
            Route("/api/files", self.attach, methods=["POST"]),
            Route("/graphql", self.graphql, methods=["POST"]),
            Route("/events", self.events),
            WebSocketRoute("/socket", self.socket),
        ]
        return Starlette(routes=routes)

    async def home(self, _request: Request) -> Response:
        answer = HTMLResponse(page())
        for number, value in enumerate(SECRETS.cookies):
            answer.set_cookie(f"c{number}", value, httponly=number % 2 == 0)
        return answer

    async def script(self, _request: Request) -> Response:
        return Response(
            SCRIPT.replace("SECRETS", json.dumps(vars(SECRETS))), media_type="text/javascript"
        )

    async def me(self, _request: Request) -> Response:
        s = SECRETS
        return JSONResponse(
            {
                "id": 7,
                "name": s.names[2],
                "email": s.emails[0],
                "phone": s.phones[0],
                "jwt": s.jwts[5],
            }
        )

    async def contacts(self, _request: Request) -> Response:
        s = SECRETS
        people = [{"email": e, "note": f"write to {e}"} for e in s.emails[:30]]
        phones = [{"label": "work", "phone": p} for p in s.phones]
        return JSONResponse({"people": people, "phones": phones, "sessions": s.jwts[6:12]})

    async def ping(self, _request: Request) -> Response:
        return JSONResponse({"ok": True})

    async def gone(self, _request: Request) -> Response:
        headers = {"cache-control": "no-store"}  # so Chromium waits until the page reads it
        return JSONResponse({"error": "gone"}, status_code=410, headers=headers)

    async def items(self, request: Request) -> Response:
        number = int(request.query_params.get("page", "1"))
        self.requests.append(f"items {number}")
        items = [{"id": number * 10 + each, "by": SECRETS.emails[each]} for each in range(2)]
        return JSONResponse({"items": items, "pages": PAGES})

    async def add(self, request: Request) -> Response:
        if request.headers.get("x-csrf-token") != SECRETS.csrf[0]:
            return JSONResponse({"error": "csrf"}, status_code=403)
        text = (await request.json())["text"]
        self.written.append(text)
        return JSONResponse({"id": len(self.written), "text": text}, status_code=201)

    async def attach(self, request: Request) -> Response:
        body = await request.body()
        return JSONResponse({"attached": b'filename="tea.txt"' in body and b"Earl Grey" in body})

    async def graphql(self, request: Request) -> Response:
        asked: dict[str, Any] = await request.json()
        variables = asked["variables"]
        return JSONResponse(
            {"data": {"item": {"id": variables["id"], "title": f"Item {variables['id']}"}}}
        )

    async def events(self, _request: Request) -> Response:
        async def stream() -> AsyncIterator[str]:
            for number, secret in enumerate([*SECRETS.emails[36:40], SECRETS.jwts[12]]):
                if number:
                    await anyio.sleep(GAP)
                note = json.dumps({"n": number, "of": secret})
                yield f"id: {number}\nevent: note\ndata: {note}\n\n"
            await anyio.sleep_forever()

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def socket(self, socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(json.dumps({"hello": SECRETS.emails[40:44]}))
        while (message := await socket.receive())["type"] == "websocket.receive":
            if not message.get("text"):  # which Chromium does not report
                continue
            asked = json.loads(message["text"])["ask"]
            await socket.send_text(json.dumps({"answer": asked, "of": SECRETS.jwts[13:20]}))
            await anyio.sleep(GAP)
            await socket.send_bytes(bytes([asked, 255]))


ADAPTER = """
(() => {
  const api = async (url, options) => {
    const answer = await fetch(url, options);
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    return answer.json();
  };
  const handlers = {
    async items(_params, context) {
      const items = [];
      for (let page = 1, pages = 1; page <= pages; page++) {
        const answer = await api(`/api/items?page=${page}&_=${Date.now()}`);
        pages = answer.pages;
        items.push(...answer.items);
        context.reportProgress({ progress: page, total: pages });
      }
      return { items };
    },
    async add({ text }) {
      const token = document.querySelector('meta[name="csrf-token"]').content;
      const headers = { "content-type": "application/json", "x-csrf-token": token };
      return api("/api/items", { method: "POST", headers, body: JSON.stringify({ text }) });
    },
    async item({ id, layout }) {
      const query = layout === "wide"
        ? "query Item($id: Int) {\\n  item(id: $id) { id title }\\n}"
        : "query Item($id: Int) { item(id: $id) { id title } }";
      const body = JSON.stringify({ operationName: "Item", query, variables: { id } });
      const headers = { "content-type": "application/json" };
      return (await api("/graphql", { method: "POST", headers, body })).data.item;
    },
    async attach() {
      const body = new FormData();
      body.append("file", new Blob(["Earl Grey"]), "tea.txt");
      return api("/api/files", { method: "POST", body });
    },
    async gone() {
      const answer = await fetch("/api/gone");  // and its body is never read
      return { status: answer.status };
    },
    async moved() {
      return api("/api/moved?page=1");
    },
    async away() {
      return { type: (await fetch("/api/away", { redirect: "manual" })).type };
    },
    async refused() {
      const socket = new WebSocket(`ws://${location.host}/refused`);
      const seen = [];
      socket.onopen = () => seen.push("open");
      socket.onerror = () => seen.push("error");
      await new Promise((resolve) => (socket.onclose = resolve));
      return { seen };
    },
    async watch() {
      const source = new EventSource("/events");
      const times = [], notes = [];
      await new Promise((resolve) => {
        source.addEventListener("note", (event) => {
          times.push(performance.now());
          notes.push(JSON.parse(event.data));
          if (notes.length === 5) resolve();
        });
      });
      source.close();
      return { notes, seconds: (times.at(-1) - times[0]) / 1000 };
    },
    async talk({ asks }) {
      const socket = new WebSocket(`ws://${location.host}/socket`);
      socket.binaryType = "arraybuffer";
      const began = performance.now();
      const heard = [];
      await new Promise((resolve, reject) => {
        socket.onclose = ({ code }) => reject(new Error(`closed with ${code}`));
        socket.onmessage = ({ data }) => {
          if (heard.length === 0) {
            socket.send("");
            socket.send(new Blob(["Earl Grey"]));
          }
          heard.push(typeof data === "string" ? JSON.parse(data) : [...new Uint8Array(data)]);
          if (heard.length % 2 === 1 && asks.length > 0) {
            socket.send(JSON.stringify({ ask: asks.shift() }));
          } else if (asks.length === 0 && heard.length % 2 === 1) {
            resolve();
          }
        };
      });
      socket.close();
      return { heard, seconds: (performance.now() - began) / 1000 };
    },
  };
  const names = Object.keys(handlers);
  globalThis.__openTabs ??= {};
  (globalThis.__openTabs.adapters ??= {})["notes"] = {
    tools: names.map((name) => ({ name, handle: async (...args) => handlers[name](...args) })),
    isReady: async () => true,
    teardown() {},
  };
})();
"""

TOOLS = {
    "items": {},
    "add": {"text": {"type": "string"}},
    "item": {"id": {"type": "integer"}, "layout": {"type": "string"}},
    "attach": {},
    "gone": {},
    "moved": {},
    "away": {},
    "refused": {},
    "watch": {},
    "talk": {"asks": {"type": "array", "items": {"type": "integer"}}},
}


def write_notes_plugin(directory: Path) -> Path:
    """Write the plugin of the site."""
    dist = directory / "dist"
    dist.mkdir(parents=True)
    about = {"displayName": "Notes", "description": "Notes", "urlPatterns": ["http://127.0.0.1/*"]}
    package = {"name": f"opentabs-plugin-{NAME}", "version": "1.0.0", "opentabs": about}
    tools = [
        {
            "name": name,
            "displayName": name,
            "description": f"Do {name}",
            "input_schema": {"type": "object", "properties": properties},
            "output_schema": {"type": "object"},
        }
        for name, properties in TOOLS.items()
    ]
    (dist / "adapter.iife.js").write_text(ADAPTER)
    (dist / "tools.json").write_text(json.dumps({"tools": tools}))
    (directory / "package.json").write_text(json.dumps(package))
    return directory
