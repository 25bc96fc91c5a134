"""The console over HTTP: responses, access and headers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from opentabs_py import console
from opentabs_py.console.access import EXPIRES_AFTER, HEADER
from opentabs_py.server.http.serve import serve_locally
from opentabs_py.tracing.html import VIEWER
from tests.console.served import OURS, PORT, ServedConsole
from tests.fakes import FakeBridge
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

CALL = {"tool": "chat_send", "arguments": {}}


async def test_a_browser_that_is_not_let_in_learns_how_to_be() -> None:
    async with ServedConsole().browser(signed_in=False) as client:
        answer = await client.get("/")
        assert answer.status_code == 401
        assert "opentabs ui" in answer.text
        assert answer.headers["content-type"].startswith("text/html")
        answer = await client.get("/console/api/tools")
        assert (answer.status_code, "opentabs ui" in answer.json()["error"]) == (401, True)
        assert (await client.post("/console/api/call", json=CALL, headers=OURS)).status_code == 401


async def test_the_address_with_a_token_lets_the_browser_in_and_takes_the_token_away() -> None:
    served = ServedConsole()
    token = served.access.invite()
    async with served.browser(signed_in=False) as client:
        answer = await client.get("/", params={"token": token})
        cookie = answer.headers["set-cookie"]
        name, *attributes = (each.strip() for each in cookie.split(";"))
        assert name.startswith(f"opentabs-console-{PORT}=")
        assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(attributes)
        key = answer.text.partition('content="0; url=/#key=')[2].partition('"')[0]
        assert len(key) >= 40
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        client.headers["cookie"] = name
        assert (await client.get("/")).status_code == 200
        assert (await client.get("/console/api/tools")).status_code == 401
        client.headers[HEADER] = key
        assert (await client.get("/console/api/tools")).status_code == 200
        # A browser that is already signed in may follow an old link.
        again = await client.get("/", params={"token": token})
        assert (again.status_code, "set-cookie" in again.headers) == (200, False)


async def test_a_token_that_is_used_or_too_old_or_wrong_lets_nobody_in() -> None:
    served = ServedConsole()
    used, old = served.access.invite(), served.access.invite()
    served.access.enter(used, {})
    served.clock.now += EXPIRES_AFTER
    async with served.browser(signed_in=False) as client:
        for token in (used, old, "wrong", ""):
            answer = await client.get("/", params={"token": token})
            assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


async def test_checking_the_address_with_head_does_not_use_up_its_token() -> None:
    served = ServedConsole()
    address = f"/?token={served.access.invite()}"
    async with served.browser(signed_in=False) as client:
        assert "set-cookie" not in (await client.head(address)).headers
        assert "set-cookie" in (await client.get(address)).headers


async def test_no_script_but_its_own_may_run_on_it_and_no_page_may_frame_it() -> None:
    async with ServedConsole().browser() as client:
        for path in ("/", "/console/main.js", "/console/viewer/details.js", "/console/api/tools"):
            answer = await client.get(path)
            assert answer.status_code == 200
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'; script-src 'self';" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"


async def test_pages_of_other_hosts_and_other_ports_cannot_make_a_call() -> None:
    served = ServedConsole()
    async with served.browser() as client:
        for headers in (
            {},
            {**OURS, "origin": "https://evil.example"},
            {**OURS, "origin": "null"},
            {**OURS, "origin": f"http://127.0.0.1:{PORT + 1}"},
        ):
            answer = await client.post("/console/api/call", json=CALL, headers=headers)
            assert answer.status_code == 403
        key = client.headers.pop(HEADER)
        answer = await client.post("/console/api/call", json=CALL, headers=OURS)
        assert answer.status_code == 401
        client.headers[HEADER] = key
        body = json.dumps(CALL)
        form = {**OURS, "content-type": "text/plain"}
        answer = await client.post("/console/api/call", content=body, headers=form)
        assert answer.status_code == 403
        answer = await client.post(
            "/console/api/call", json=CALL, headers={**OURS, "host": "e.com"}
        )
        assert answer.status_code == 403
    assert served.bridge.received == []


async def test_a_call_is_answered_with_its_id_and_its_outcome() -> None:
    served = ServedConsole()
    with served.watch.watching():
        async with served.browser() as client:
            answer = await client.post("/console/api/call", json=CALL, headers=OURS)
            first, *_, last = map(json.loads, answer.text.splitlines())
            assert last["outcome"]["structuredContent"] == {"sent": True}
            about = (await client.get(f"/console/api/calls/{first['callId']}")).json()
    assert about["running"] is False
    assert [each["name"] for each in about["calls"]] == ["chat_send"]


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ("{", 400, "not valid"),
        ("[]", 400, "not valid"),
        ('{"tool": "x", "arguments": []}', 400, "arguments"),
        ('{"tool": "x", "arguments": {}, "more": 1}', 400, "more"),
        ('"' + "x" * 2_000_000 + '"', 413, "longer"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused_with_the_reason(
    body: str, status: int, why: str
) -> None:
    async with ServedConsole().browser() as client:
        headers = {**OURS, "content-type": "application/json"}
        for path in ("/console/api/call", "/console/api/snippets"):
            answer = await client.post(path, content=body, headers=headers)
            assert answer.status_code == status
            assert why in answer.json()["error"]


async def test_tools_are_listed_in_short_and_described_in_full() -> None:
    async with ServedConsole().browser() as client:
        [tool] = (await client.get("/console/api/tools", params={"owner": "chat"})).json()
        assert tool == {
            "name": "chat_send",
            "owner": "chat",
            "title": "Send",
            "summary": "Say it",
            "group": "Messages",
            "icon": "send",
            "permission": "auto",
            "because": 'the setting permissions."default" is "auto"',
            "rule": "chat.send",
            "readOnly": False,
        }
        assert (await client.get("/console/api/tools", params={"owner": "x"})).json() == []
        whole = (await client.get("/console/api/tools/chat_send")).json()
        assert whole["inputSchema"]["type"] == "object"
        assert whole["needsTab"]
        for path in ("tools/nope", "calls/nope", "icons/chat.svg", "icons/nope.svg"):
            answer = await client.get(f"/console/api/{path}")
            assert (answer.status_code, bool(answer.json()["error"])) == (404, True)


async def test_an_icon_can_do_nothing_even_if_it_is_opened_by_itself() -> None:
    served = ServedConsole()
    [plugin] = served.plugins.plugins
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    served.plugins.plugins[:] = [replace(plugin, manifest=replace(plugin.manifest, icon_svg=svg))]
    async with served.browser() as client:
        answer = await client.get("/console/api/icons/chat.svg")
    assert answer.text == svg
    assert answer.headers["content-type"].startswith("image/svg+xml")
    policy = answer.headers["content-security-policy"]
    assert policy.endswith("; sandbox")
    assert "script-src" not in policy
    assert policy.startswith("default-src 'none'")


async def test_the_state_of_the_page_is_sent_as_events() -> None:
    served = ServedConsole()
    events: list[Any] = []

    async def send(body: bytes) -> None:
        assert body.startswith(b"data: ")
        assert body.endswith(b"\n\n")
        events.append(json.loads(body.removeprefix(b"data: ")))
        served.watch.stop()

    with served.watch.watching():
        await served.tool_calls.call("chat_send", {})
        await served.watch.stream(send, boot="", version=0)
    [event] = events
    assert [each["name"] for each in event["plugins"]["changed"]] == ["chat"]
    assert [each["state"] for each in event["calls"]["changed"]] == ["succeeded"]
    assert event["now"] == served.clock.now


async def test_only_the_cookies_own_server_is_served_its_page_by_any_method() -> None:
    async with ServedConsole(FakeBridge(value=1)).browser() as client:
        assert (await client.post("/")).status_code == 405
        assert (await client.get("/nowhere")).status_code == 404


async def test_a_stream_s_headers_can_be_asked_for_and_end_at_once() -> None:
    async with ServedConsole().browser() as client:
        with anyio.fail_after(PATIENT):
            answer = await client.head("/console/api/stream")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize("path", ["console/main.js", "console/viewer/x", "console/api/stream"])
async def test_a_socket_of_a_page_that_has_none_is_refused_and_not_logged(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve_locally(ServedConsole().app) as url:
        with pytest.raises(InvalidStatus) as caught:
            async with connect(url.replace("http:", "ws:") + path, origin=None):
                pass
    assert (caught.value.response.status_code, caplog.messages) == (403, [])


def test_every_file_that_the_page_names_is_there() -> None:
    page = Path(console.__file__).with_name("page")
    html = "".join((page / name).read_text() for name in ("index.html", "signed_out.html"))
    named = {each.removeprefix("/console/") for each in html.split('"') if "/console/" in each}
    viewers = {each for each in named if each.startswith("viewer/")}

    assert viewers
    assert [each for each in viewers if not (VIEWER.parent / each).is_file()] == []
    assert "main.js" in named
    assert [each for each in named - viewers if not (page / each).is_file()] == []


def test_every_module_is_preloaded_because_each_import_would_wait_for_the_one_before() -> None:
    page = Path(console.__file__).with_name("page")
    modules = {f"/console/{each.name}" for each in page.glob("*.js")}
    named = {each for each in (page / "index.html").read_text().split('"') if each in modules}
    assert named == modules


async def test_files_are_read_again_only_when_they_have_changed_and_none_outside_can_be() -> None:
    async with ServedConsole().browser(signed_in=False) as client:
        first = await client.get("/console/main.js")
        assert first.headers["content-type"].startswith("text/javascript")
        again = await client.get(
            "/console/main.js", headers={"if-none-match": first.headers["etag"]}
        )
        assert (again.status_code, again.content) == (304, b"")
        assert (await client.post("/console/main.js")).status_code == 405
        outside = ("", "..", "%2e%2e", "../routes.py", "..%2froutes.py")
        for path in (*outside, "nope.js", "%00", "x" * 256):
            assert (await client.get(f"/console/{path}")).status_code in (401, 404)
