"""An issue tracker whose site can change, and the plugin that was written for it before.

Like that of a living site, its content differs each time: how many issues there are, who has them,
which of them have a due date. Only a mutation changes its shape.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

NAME = "tracker"
STATES = ("open", "in_progress", "closed")
PAGES = 3
WORDS = "slow login crash typo export menu dark mode search sync mail retry".split()  # noqa: SIM905
PEOPLE = ("Amara", "Ben", "Chiara", "Dmitri")

Json = dict[str, Any]


@dataclass(frozen=True)
class Mutation:
    """A change of the site.

    Attributes:
        kind: The kind of change.
        expected: The expected state of each affected tool's calls, and the severity.
        told: What the report has to contain.
        edit: Changes the JSON of a response, by path.
        answer: Replaces the response to a request, by path.
        html: Changes the page.
    """

    kind: str
    expected: Mapping[str, str]
    told: str = ""
    edit: Mapping[str, Callable[[Json], object]] = field(default_factory=dict)
    answer: Mapping[str, Callable[[], Response]] = field(default_factory=dict)
    html: Callable[[str], str] = str


NONE = Mutation("none", {})


class DriftingSite:
    """The site; `mutation` may be set at any time."""

    def __init__(self, seed: int = 1) -> None:
        self.mutation = NONE
        self._chance = random.Random(seed)

    def app(self) -> Starlette:
        routes = [
            Route("/", self.home),
            Route("/login", lambda _: HTMLResponse('<form><input type="password"></form>')),
            Route("/board", self.board),
            Route("/api/me", self.me),
            Route("/api/issues", self.issues),
            Route("/api/issues/{id}", self.issue),
            Route("/api/v2/issues", self.issues),
            Route("/api/v2/me", self.me),
        ]
        return Starlette(routes=routes)

    async def home(self, _request: Request) -> Response:
        return self._answer(
            "/", lambda: HTMLResponse("<!doctype html><title>Tracker</title><main id=app></main>")
        )

    async def board(self, _request: Request) -> Response:
        return self._answer("/board", lambda: HTMLResponse(self.mutation.html(self._board())))

    def _board(self) -> str:
        rows = "".join(
            f'<li class="issue {"urgent" if self._chance.random() < 0.3 else "usual"}">'
            f'<span class="title">{escape(self._title())}</span>'
            f'<time class="due" datetime="2026-12-{self._chance.randint(1, 28):02}">soon</time>'
            "</li>"
            for _ in range(self._chance.randint(3, 9))
        )
        return f'<!doctype html><h1 class="name">Board</h1><ul class="issues">{rows}</ul>'

    async def me(self, request: Request) -> Response:
        return self._json(
            request.url.path,
            {"id": 7, "name": "Amara", "plan": "team", "unread": self._chance.randint(0, 9)},
        )

    async def issues(self, request: Request) -> Response:
        page = int(request.query_params.get("cursor", "1"))
        count = self._chance.randint(12, 25)
        body: Json = {
            "issues": [self._issue(page * 100 + self._chance.randint(0, 99)) for _ in range(count)],
            "total": self._chance.randint(50, 70),
        }
        if page < PAGES:
            body["nextCursor"] = str(page + 1)
        return self._json(request.url.path, body)

    async def issue(self, request: Request) -> Response:
        return self._json("/api/issues/{id}", self._issue(int(request.path_params["id"])))

    def _issue(self, number: int) -> Json:
        chance = random.Random(number)
        issue: Json = {
            "id": number,
            "title": " ".join(chance.sample(WORDS, 2)),
            "state": chance.choice(STATES),
            "createdAt": f"2026-11-{chance.randint(1, 28):02}T10:00:00Z",
            "votes": self._chance.choice([self._chance.randint(0, 50), self._chance.random()]),
            "author": {"login": chance.choice(PEOPLE).lower(), "name": chance.choice(PEOPLE)},
            "labels": self._chance.sample(WORDS, self._chance.randint(0, 3)),
            "assignee": chance.choice([None, *PEOPLE]),
        }
        if self._chance.random() < 0.4:
            issue["dueOn"] = f"2026-12-{chance.randint(1, 28):02}"
        return issue

    def _title(self) -> str:
        return " ".join(self._chance.sample(WORDS, self._chance.randint(1, 4)))

    def _json(self, path: str, body: Json) -> Response:
        if (edit := self.mutation.edit.get(path)) is not None:
            edit(body)
        return self._answer(path, lambda: JSONResponse(body))

    def _answer(self, path: str, usual: Callable[[], Response]) -> Response:
        answer = self.mutation.answer.get(path, usual)()
        answer.headers["cache-control"] = "no-store"
        return answer


# --- mutations ---

LIST, ONE, ME = "/api/issues", "/api/issues/{id}", "/api/me"
# What a missing member of an issue means for each tool: the schema of its result requires the
# member, or the result merely lacks it, or the tool does not read it.
MEMBERS = {"title": "schema", "state": "schema", "createdAt": "tool", "author": "harmless"}


def mutations(seed: int) -> list[Mutation]:
    """Return thirty mutations."""
    chance = random.Random(seed)
    members = [*MEMBERS]

    def some(count: int, make: Callable[[str], Mutation]) -> list[Mutation]:
        return [make(member) for member in chance.choices(members, k=count)]

    return [
        *some(
            5, lambda member: renamed(member, f"{member}{chance.choice(['Value', 'Text', '2'])}")
        ),
        *some(3, _removed),
        *some(4, _retyped),
        *(_cursor(chance.choice(["paging", "meta", "links"])) for _ in range(3)),
        *(_grown(chance.choice(["blocked", "archived", "on_hold"])) for _ in range(3)),
        *(_route(status) for status in (404, 410, 301)),
        *(_class(*each) for each in (("title", "heading"), ("issue", "row"), ("due", "deadline"))),
        *(_signed_out(each) for each in ("status", "redirect", "password")),
        *(limited(status) for status in (429, 503)),
        _emptied(),
    ]


def _each(change: Callable[[Json], object]) -> Mapping[str, Callable[[Json], object]]:
    """Change all issues, both in the list and one by one."""
    return {LIST: lambda body: [change(issue) for issue in body["issues"]], ONE: change}


def _by_member(member: str) -> Mapping[str, str]:
    how = MEMBERS[member]
    return {} if how == "harmless" else {"tracker_list": how, "tracker_get": how}


def renamed(member: str, name: str) -> Mutation:
    """A member of issues is renamed."""

    def rename(issue: Json) -> None:
        issue[name] = issue.pop(member)

    return Mutation(
        f"{member} renamed", _by_member(member), f"{member} is now called {name}", _each(rename)
    )


def _removed(member: str) -> Mutation:
    return Mutation(
        f"{member} removed",
        _by_member(member),
        f"{member} is gone",
        _each(lambda issue: issue.pop(member)),
    )


def _retyped(member: str) -> Mutation:
    def retype(issue: Json) -> None:
        issue[member] = 5 if isinstance(issue[member], str) else "Amara"

    now = "string" if member == "author" else "number"
    return Mutation(f"{member} retyped", _by_member(member), f"and is now {now}", _each(retype))


def _cursor(into: str) -> Mutation:
    def move(body: Json) -> None:
        if "nextCursor" in body:
            body[into] = {"nextCursor": body.pop("nextCursor")}

    # The tool finds one page, and takes it for the last.
    told = f"nextCursor has moved to {into}.nextCursor"
    return Mutation("cursor moved", {"tracker_list": "tool"}, told, {LIST: move})


def _grown(state: str) -> Mutation:
    def grow(issue: Json) -> None:
        issue["state"] = state if issue["id"] % 3 == 0 else issue["state"]

    expected = {"tracker_list": "schema"}
    return Mutation("enum grown", expected, f'new value, "{state}"', {LIST: _each(grow)[LIST]})


def _route(status: int) -> Mutation:
    def gone() -> Response:
        if status == 301:
            return HTMLResponse("<h1>We have a new API</h1>")
        return JSONResponse({"error": "gone"}, status_code=status)

    told = "returns HTML" if status == 301 else f"returns {status}"
    return Mutation("route moved", {"tracker_list": "tool"}, told, answer={LIST: gone})


def _class(old: str, new: str) -> Mutation:
    def rename(html: str) -> str:
        return html.replace(f'class="{old}', f'class="{new}')

    tag = {"title": "span", "issue": "li", "due": "time"}[old]
    return Mutation(
        "class renamed", {"tracker_board": "tool"}, f"{tag}.{old} finds nothing", html=rename
    )


def _signed_out(how: str) -> Mutation:
    answers: Mapping[str, Mapping[str, Callable[[], Response]]] = {
        "status": {
            path: lambda: JSONResponse({"error": "no session"}, status_code=401)
            for path in (LIST, ONE, ME)
        },
        "redirect": {path: lambda: RedirectResponse("/login") for path in ("/", LIST, ONE, ME)},
        "password": {
            path: lambda: HTMLResponse('<form><input type="password" name="p"></form>')
            for path in ("/", "/board")
        },
    }
    tools = {
        "status": ("list", "get", "me"),
        "redirect": ("list", "get", "me"),
        "password": ("board",),
    }[how]
    expected = {f"tracker_{tool}": "unknown" for tool in tools}
    return Mutation(f"login expired: {how}", expected, answer=answers[how])


def redirected() -> Mutation:
    """A part of the site's API is elsewhere."""
    told = "redirects to /api/v2/me (it returned 200)"
    return Mutation("redirected", {}, told, answer={ME: lambda: RedirectResponse("/api/v2/me")})


def limited(status: int) -> Mutation:
    """The site does not answer for a while."""

    def refuse() -> Response:
        return JSONResponse({"error": "later"}, status_code=status)

    return Mutation("limited", {"tracker_list": "unknown"}, answer={LIST: refuse})


def _emptied() -> Mutation:
    def empty(body: Json) -> None:
        body["issues"] = []

    # A site without issues need not be a changed one.
    return Mutation("nothing to list", {"tracker_list": "unknown"}, edit={LIST: empty})


# --- the plugin ---

ADAPTER = """
(() => {
  const fail = (code, category, message) => Object.assign(new Error(message), { code, category });
  const api = async (path) => {
    const answer = await fetch(path);
    if (!answer.ok) throw fail(`HTTP_${answer.status}`, undefined, `HTTP ${answer.status}`);
    return answer.json();
  };
  const pick = ({ id, title, state, createdAt }) => ({ id, title, state, createdAt });
  const handlers = {
    async list() {
      const issues = [];
      for (let cursor = "1"; cursor !== undefined; ) {
        const page = await api(`/api/issues?cursor=${cursor}`);
        issues.push(...page.issues.map(pick));
        cursor = page.nextCursor;
      }
      return { issues };
    },
    get: async ({ id }) => pick(await api(`/api/issues/${id}`)),
    async me() {
      const { name, plan } = await api("/api/me");
      return { name, plan };
    },
    async board() {
      const html = await (await fetch("/board")).text();
      const page = new DOMParser().parseFromString(html, "text/html");
      return {
        issues: [...page.querySelectorAll("li.issue")].map((row) => ({
          title: row.querySelector("span.title")?.textContent,
          due: row.querySelector("time.due")?.dateTime,
        })),
      };
    },
    async add() {
      return {};
    },
  };
  (globalThis.__openTabs ??= {}).adapters ??= {};
  globalThis.__openTabs.adapters["tracker"] = {
    tools: Object.keys(handlers).map((name) => ({
      name, handle: async (...args) => handlers[name](...args),
    })),
    isReady: async () => true,
    teardown() {},
  };
})();
"""

_ISSUE: Json = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "title": {"type": "string"},
        "state": {"enum": [*STATES]},
    },
    "required": ["id", "title", "state"],
}
TOOLS: Mapping[str, tuple[Json, Json]] = {
    "list": ({}, {"type": "object", "properties": {"issues": {"type": "array", "items": _ISSUE}}}),
    "get": ({"id": {"type": "integer"}}, _ISSUE),
    "me": ({}, {"type": "object"}),
    "board": ({}, {"type": "object"}),
    "add": ({}, {"type": "object"}),
}


def write_tracker_plugin(directory: Path) -> Path:
    """Write the plugin of the site."""
    dist = directory / "dist"
    dist.mkdir(parents=True)
    about = {
        "displayName": "Tracker",
        "description": "Issues",
        "urlPatterns": ["http://127.0.0.1/*"],
    }
    package = {"name": f"opentabs-plugin-{NAME}", "version": "1.0.0", "opentabs": about}
    tools = [
        {
            "name": name,
            "displayName": name,
            "description": f"Do {name}",
            "input_schema": {"type": "object", "properties": properties},
            "output_schema": output,
            "annotations": {"readOnlyHint": name != "add"},
        }
        for name, (properties, output) in TOOLS.items()
    ]
    (dist / "adapter.iife.js").write_text(ADAPTER)
    (dist / "tools.json").write_text(json.dumps({"tools": tools}))
    (directory / "package.json").write_text(json.dumps(package))
    return directory
