"""Sites to generate plugins from: persisted queries, every kind of API, HTML and forms."""

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

Handler = Callable[[Request], Awaitable[Response]]

# --- GraphQL ---

BOOKS = [
    {
        "id": f"book-{number:04}",
        "title": f"Volume {number}",
        "genre": ("crime", "poetry", "travel")[number % 3],
        "published": f"20{number:02}-03-01T08:00:00Z",
        "author": {"name": f"Writer {number % 5}", "born": None if number % 2 else 1900 + number},
    }
    for number in range(12)
]
PAGE = 5
OPERATIONS = {
    "Books": "query Books($first: Int!, $after: String) { … }",
    "BookDetail": "query BookDetail($id: ID!) { … }",
    "AddReview": "mutation AddReview($id: ID!, $stars: Int!, $text: String) { … }",
}
HASHES = {hashlib.sha256(text.encode()).hexdigest(): name for name, text in OPERATIONS.items()}

LIBRARY_SCRIPT = """
const hashes = HASHES;
if (!localStorage.getItem("session")) {
  localStorage.setItem("session", JSON.stringify({ user: { accessToken: "TOKEN" } }));
}
const { accessToken } = JSON.parse(localStorage.getItem("session")).user;
async function run(operationName, variables) {
  const answer = await fetch("/graphql", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${accessToken}`,
      "x-csrf-token": document.querySelector('meta[name="csrf-token"]').content,
      "x-client": "library-web",
    },
    body: JSON.stringify({
      operationName,
      variables,
      extensions: { persistedQuery: { version: 1, sha256Hash: hashes[operationName] } },
    }),
  });
  return (await answer.json()).data;
}
let after = null;
async function more() {
  const { books } = await run("Books", { first: 5, after });
  after = books.pageInfo.endCursor;
  for (const { node } of books.edges) {
    const row = document.createElement("button");
    row.textContent = node.title;
    row.onclick = async () => {
      const { book } = await run("BookDetail", { id: node.id });
      document.querySelector("h1").textContent = book.title;
    };
    document.body.append(row);
  }
}
document.querySelector("#more").onclick = more;
document.querySelector("#review").onclick = () =>
  run("AddReview", { id: "book-0003", stars: 4, text: "Good" });
more();
"""


def library() -> Starlette:
    """A site with persisted queries, a token in local storage, and a CSRF token in the page."""
    token, csrf = secrets.token_urlsafe(30), secrets.token_hex(16)

    async def home(_request: Request) -> Response:
        return HTMLResponse(
            f'<!doctype html><title>Library</title><meta name="csrf-token" content="{csrf}">'
            "<h1>Library</h1><button id=more>More</button><button id=review>Review</button>"
            '<script src="/app.js"></script>'
        )

    async def script(_request: Request) -> Response:
        hashes = {name: sha for sha, name in HASHES.items()}
        text = LIBRARY_SCRIPT.replace("HASHES", json.dumps(hashes)).replace("TOKEN", token)
        return Response(text, media_type="text/javascript")

    async def graphql(request: Request) -> Response:
        is_known = request.headers.get("authorization") == f"Bearer {token}"
        if not is_known or request.headers.get("x-csrf-token") != csrf:
            return JSONResponse({"errors": [{"message": "Who are you?"}]}, status_code=401)
        asked = await request.json()
        name = HASHES[asked["extensions"]["persistedQuery"]["sha256Hash"]]
        return JSONResponse({"data": answer(name, asked.get("variables") or {})})

    return Starlette(
        routes=[
            Route("/", home),
            Route("/app.js", script),
            Route("/graphql", graphql, methods=["POST"]),
        ]
    )


def answer(name: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
    if name == "Books":
        ids = [each["id"] for each in BOOKS]
        start = ids.index(variables["after"]) + 1 if variables.get("after") else 0
        shown = BOOKS[start : start + variables["first"]]
        has_next = start + len(shown) < len(BOOKS)
        info = {"hasNextPage": has_next, "endCursor": shown[-1]["id"] if has_next else None}
        return {
            "books": {
                "edges": [{"node": each} for each in shown],
                "pageInfo": info,
                "totalCount": len(BOOKS),
            }
        }
    if name == "BookDetail":
        found = next(each for each in BOOKS if each["id"] == variables["id"])
        return {"book": {**found, "reviews": [{"stars": 5, "text": "Fine"}]}}
    return {"addReview": {"review": {"stars": variables["stars"], "text": variables["text"]}}}


# --- every kind of API ---

ZOO = [{"id": number, "name": f"animal {number}", "legs": number % 5} for number in range(1, 8)]
ZOO_TYPE = "application/vnd.zoo+json"
ZOO_SCRIPT = """
async () => {
  const ask = async (url, options) => {
    const answer = await fetch(url, options);
    return [answer.status, await answer.text()];
  };
  const { token } = JSON.parse((await ask("/api/session"))[1]);
  const headers = { "x-auth": token, accept: "application/vnd.zoo+json" };
  const get = (url) => ask(url, { headers });
  const send = (method, url, value) => ask(url, {
    method,
    headers: { ...headers, "content-type": "application/vnd.zoo+json" },
    body: value && JSON.stringify(value),
  });
  await get("/api/me");
  for (const page of [1, 2, 3]) await get(`/api/animals?page=${page}&per_page=3&sort=name`);
  for (const offset of [0, 3]) await get(`/api/keepers?offset=${offset}&limit=3`);
  await get("/api/visits?limit=4");
  await get("/api/visits?limit=4&after=4");
  await get("/api/cages?tag=big&tag=open");
  await get("/api/feeds");
  await get("/api/feeds?from_page=2");
  await get("/api/animals/3");
  await get("/api/animals/5");
  await get("/api/animals/77");
  await get("/api/search?q=lion");
  await get(`${location.origin}//api/tanks`);
  await send("POST", "/api/animals", { name: "zebra", legs: 4, tags: ["striped"] });
  await send("PATCH", "/api/animals/3", { name: "yak" });
  await send("DELETE", "/api/animals/5");
  await send("POST", "/api/animals/3/feed", { grams: 250 });
  await send("POST", "/api/animals/3/pet");
  await send("POST", "/collect", { event: "seen" });
  const call = (id, method, params) => send("POST", "/rpc", { jsonrpc: "2.0", id, method, params });
  await call(4, "zoo.listGates", { open: true });
  await call(5, "zoo.close", ["north"]);
  await call(undefined, "zoo.greet", { name: "Ann" });
  const variables = encodeURIComponent(JSON.stringify({ id: "a-000001" }));
  const query = encodeURIComponent("query Gate($id: ID!) { gate(id: $id) { id } }");
  await get(`/graphql?operationName=Gate&query=${query}&variables=${variables}`);
}
"""


def zoo() -> Starlette:  # noqa: C901 (one small handler for each route)
    """A site with every kind of API; one requires a token from another response."""
    token = secrets.token_urlsafe(24)

    async def home(_request: Request) -> Response:
        return HTMLResponse("<!doctype html><title>Zoo</title><h1>Zoo</h1>")

    async def session(_request: Request) -> Response:
        return JSONResponse({"token": token})

    def guarded(handler: Handler) -> Handler:
        async def check(request: Request) -> Response:
            if request.headers.get("x-auth") != token:
                return JSONResponse({"error": "Who are you?"}, status_code=401)
            return await handler(request)

        return check

    async def me(request: Request) -> Response:
        if request.headers["accept"] != ZOO_TYPE:
            return HTMLResponse("<h1>A keeper</h1>")
        return JSONResponse({"login": "keeper", "role": "admin"})

    async def animals(request: Request) -> Response:
        if request.method == "POST" and request.headers["content-type"] != ZOO_TYPE:
            return JSONResponse({"error": "What is this?"}, status_code=415)
        if request.method == "POST":
            return JSONResponse({"id": 8, **await request.json()}, status_code=201)
        page, size = (int(request.query_params[name]) for name in ("page", "per_page"))
        shown = ZOO[(page - 1) * size : page * size]
        return JSONResponse({"animals": shown, "meta": {"total_pages": 3, "page": page}})

    async def animal(request: Request) -> Response:
        found = next((each for each in ZOO if each["id"] == request.path_params["id"]), None)
        if request.method == "DELETE":
            return Response(status_code=204)
        if found is None:
            return JSONResponse({"error": "no such animal"}, status_code=404)
        changed = await request.json() if request.method == "PATCH" else {}
        return JSONResponse({**found, **changed})

    async def keepers(request: Request) -> Response:
        start, size = (int(request.query_params[name]) for name in ("offset", "limit"))
        names = [{"name": f"keeper {number}"} for number in range(5)]
        return JSONResponse({"results": names[start : start + size], "total": len(names)})

    async def visits(request: Request) -> Response:
        start = int(request.query_params.get("after", "0"))
        shown = [{"visit": number} for number in range(start, min(start + 4, 6))]
        link = '<?limit=4&after=4>; rel="next"'
        return JSONResponse(shown, headers={} if start else {"link": link})

    async def feeds(request: Request) -> Response:
        is_second = request.query_params.get("from_page") == "2"
        nearest = None if is_second else "/api/feeds?from_page=2"
        return JSONResponse({"items": [{"grams": 5 if is_second else 9}], "next": nearest})

    async def cages(request: Request) -> Response:
        return JSONResponse([{"tags": request.query_params.getlist("tag")}])

    async def search(request: Request) -> Response:
        return JSONResponse({"found": [], "query": request.query_params["q"]})

    async def tanks(_request: Request) -> Response:
        return JSONResponse({"tanks": [{"liters": 900}]})

    async def feed(request: Request) -> Response:
        return JSONResponse({"fed": request.path_params["id"], **await request.json()})

    async def pet(_request: Request) -> Response:
        return PlainTextResponse("It purrs")

    async def collect(_request: Request) -> Response:
        return Response(status_code=204)

    async def rpc(request: Request) -> Response:
        asked = await request.json()
        if asked["method"] == "zoo.greet":
            return Response(status_code=204)
        gates = [{"gate": "north", "open": True}]
        result = gates if asked["method"] == "zoo.listGates" else {"closed": asked["params"][0]}
        return JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    async def graphql(request: Request) -> Response:
        variables = json.loads(request.query_params["variables"])
        return JSONResponse({"data": {"gate": {"id": variables["id"]}}})

    return Starlette(
        routes=[
            Route("/", home),
            Route("/api/session", session),
            Route("/api/me", guarded(me)),
            Route("/api/animals", guarded(animals), methods=["GET", "POST"]),
            Route("/api/animals/{id:int}", guarded(animal), methods=["GET", "PATCH", "DELETE"]),
            Route("/api/animals/{id:int}/feed", guarded(feed), methods=["POST"]),
            Route("/api/animals/{id:int}/pet", guarded(pet), methods=["POST"]),
            Route("/api/keepers", guarded(keepers)),
            Route("/api/visits", guarded(visits)),
            Route("/api/feeds", guarded(feeds)),
            Route("/api/cages", guarded(cages)),
            Route("/api/search", guarded(search)),
            Route("//api/tanks", guarded(tanks)),
            Route("/collect", collect, methods=["POST"]),
            Route("/rpc", guarded(rpc), methods=["POST"]),
            Route("/graphql", guarded(graphql)),
        ]
    )


# --- HTML ---

TICKETS = [
    {"id": 100 + number, "subject": f"Printer {number} is & stays jammed", "status": status}
    for number, status in enumerate(["open", "closed", "open", "waiting", "open", "closed", "open"])
]
PER_PAGE = 3
FIRST_NEW = 207


class Helpdesk:
    """A site of pages and forms, with a different CSRF token on each page.

    Args:
        created: Whether it already has the ticket that the first visitor creates.

    Attributes:
        tickets: Its tickets.
    """

    def __init__(self, *, created: bool = False) -> None:
        self.tickets = [dict(each) for each in TICKETS]
        if created:
            self.tickets.append({"id": FIRST_NEW, "subject": "No paper", "status": "open"})
        self._tokens: set[str] = set()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self.home),
                Route("/welcome", self.welcome),
                Route("/tickets", self.list),
                Route("/tickets", self.create, methods=["POST"]),
                Route("/tickets/new", self.form),
                Route("/tickets/close", self.close, methods=["POST"]),
                Route("/tickets/{id:int}", self.show),
                Route("/tickets/{id:int}/comments", self.comment, methods=["POST"]),
            ]
        )

    async def home(self, _request: Request) -> Response:
        answer = RedirectResponse("/welcome")
        answer.set_cookie("helpdesk", secrets.token_hex(16), httponly=True)
        return answer

    async def welcome(self, _request: Request) -> Response:
        return self._page("Helpdesk", "<p>What can we do for you?</p>")

    async def list(self, request: Request) -> Response:
        number = int(request.query_params.get("page", "1"))
        status = request.query_params.get("status", "")
        found = [each for each in self.tickets if status in ("", each["status"])]
        start = (number - 1) * PER_PAGE
        rows = "".join(
            f'<tr data-id="{each["id"]}"><td>{each["id"]}<td><a href="/tickets/{each["id"]}">'
            f"{str(each['subject']).replace('&', '&amp;')}</a><td>{each['status']}"
            f'<td><form action="/tickets/close" method="post">{self._token()}'
            f'<input type="hidden" name="ticket" value="{each["id"]}">'
            f'<button aria-label="Close {each["id"]}">Close</button></form>'
            for each in found[start : start + PER_PAGE]
        )
        keep = f"&status={status}" if status else ""
        more = f'<a rel="next" href="?page={number + 1}{keep}">Next</a>'
        options = "".join(f"<option>{each}</option>" for each in ("open", "waiting", "closed"))
        return self._page(
            "Tickets",
            '<form action="/tickets"><label for="s">Status</label>'
            f'<select id="s" name="status"><option value="">Any</option>{options}</select>'
            "<button>Show</button></form>"
            "<table><thead><tr><th>Number<th>Subject<th>Status</thead>"
            f"<tbody>{rows}</tbody></table>{more if start + PER_PAGE < len(found) else ''}",
        )

    async def form(self, _request: Request) -> Response:
        return self._page(
            "New ticket",
            '<form action="http://["><button>Broken</button></form>'
            f'<form action="/tickets" method="post">{self._token()}'
            '<label>Subject <input name="subject" required></label>'
            '<label for="p">Priority</label><select id="p" name="priority">'
            '<option value="1">Low</option><option value="2" selected>Normal</option></select>'
            '<textarea name="body"></textarea><label><input type="checkbox" name="urgent" '
            'value="yes"> Urgent</label><select name="parts" multiple><option>ink<option>drum'
            '</select><input type="checkbox" name="tell" value="team" checked>'
            '<input type="checkbox" name="tell" value="boss">'
            '<button name="save" value="1">Create</button></form>',
        )

    async def create(self, request: Request) -> Response:
        fields = await self._fields(request)
        if fields is None:
            return self._page("Not sent", '<p class="error">The form has expired.</p>', 422)
        number = FIRST_NEW + len(self.tickets) - len(TICKETS)
        self.tickets.append({"id": number, "subject": fields["subject"], "status": "open"})
        return RedirectResponse(f"/tickets/{number}?created=1", 303)

    async def show(self, request: Request) -> Response:
        number = request.path_params["id"]
        found = next((each for each in self.tickets if each["id"] == number), None)
        if found is None:
            return self._page("There is no such ticket", "", 404)
        notice = '<p role="status">Ticket created</p>' if "created" in request.query_params else ""
        return self._page(
            str(found["subject"]).replace("&", "&amp;"),
            f"{notice}<dl><dt>Number:<dd>{number}<dt>Status:<dd>{found['status']}</dl>"
            f'<form action="/tickets/{number}/comments" method="post">{self._token()}'
            '<textarea name="text" required></textarea><button>Send</button></form>',
        )

    async def close(self, request: Request) -> Response:
        fields = await self._fields(request)
        if fields is None:
            return self._page("Not closed", '<p class="error">The form has expired.</p>', 422)
        found = next(each for each in self.tickets if str(each["id"]) == fields["ticket"])
        return self._page(f"Ticket {found['id']}", '<p class="flash">Closed</p>')

    async def comment(self, request: Request) -> Response:
        if await self._fields(request) is None:
            return self._page("Not sent", '<p class="error">The form has expired.</p>', 422)
        number = request.path_params["id"]
        return self._page(f"Ticket {number}", '<p class="flash">Comment added</p>')

    def _token(self) -> str:
        token = secrets.token_hex(16)
        self._tokens.add(token)
        return f'<input type="hidden" name="csrf_token" value="{token}">'

    async def _fields(self, request: Request) -> Mapping[str, str] | None:
        sent = {
            name: values[0] for name, values in parse_qs((await request.body()).decode()).items()
        }
        return sent if sent.get("csrf_token") in self._tokens else None

    def _page(self, title: str, body: str, status: int = 200) -> Response:
        text = (
            f"<!doctype html><title>{title} – Helpdesk</title>"
            '<nav><ul><li><a href="/tickets">Tickets</a><li><a href="/tickets/new">New</a>'
            f'<li><a href="/logout">Log out</a></ul></nav><h1>{title}</h1>{body}'
        )
        return HTMLResponse(
            text,
            status,
            {"content-security-policy": "require-trusted-types-for 'script'"},
        )
