"""The console's API for the extension's pages, which have another origin and no cookie."""

import pytest

from opentabs_py.bridge.bridge import Bridge
from tests.console.served import OURS, PORT, ServedConsole
from tests.fakes import pages_of

pytestmark = pytest.mark.anyio

SECRET = "s" * 64
EXTENSION = "chrome-extension://x"
THEIRS = {"origin": EXTENSION, "authorization": f"Bearer {SECRET}", "x-opentabs-console": "1"}
CALL = {"tool": "chat_send", "arguments": {}}


async def test_a_page_of_the_extension_with_its_secret_may_see_and_do_everything() -> None:
    served = ServedConsole()
    async with served.browser(signed_in=False) as client:
        listed = await client.get("/console/api/tools", headers=THEIRS)
        called = await client.post("/console/api/call", json=CALL, headers=THEIRS)
        for answer in (listed, called):
            assert answer.status_code == 200
            assert answer.headers["access-control-allow-origin"] == EXTENSION
            assert answer.headers["vary"] == "Origin"
            assert "access-control-allow-credentials" not in answer.headers
    assert len(served.bridge.received) == 1


async def test_where_chrome_names_no_origin_the_secret_is_enough_to_look_but_not_to_act() -> None:
    served = ServedConsole()
    bare = {name: value for name, value in THEIRS.items() if name != "origin"}
    async with served.browser(signed_in=False) as client:
        assert (await client.get("/console/api/tools", headers=bare)).status_code == 200
        assert (await client.post("/console/api/call", json=CALL, headers=bare)).status_code == 403
    assert served.bridge.received == []


@pytest.mark.parametrize(
    "changed",
    [
        {"authorization": f"Bearer {'t' * 64}"},
        {"authorization": "Bearer "},
        {"authorization": SECRET},
        {"authorization": f"Basic {SECRET}"},
        {"authorization": ""},
        {"origin": "chrome-extension://y"},
        {"origin": "chrome-extension://x.evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
    ],
)
async def test_whoever_has_another_secret_or_another_origin_gets_nothing(
    changed: dict[str, str],
) -> None:
    served = ServedConsole()
    async with served.browser(signed_in=False) as client:
        for answer in (
            await client.get("/console/api/tools", headers={**THEIRS, **changed}),
            await client.get("/console/api/stream", headers={**THEIRS, **changed}),
            await client.post("/console/api/call", json=CALL, headers={**THEIRS, **changed}),
        ):
            assert answer.status_code in (401, 403)
            assert "access-control-allow-origin" not in answer.headers
    assert served.bridge.received == []


async def test_a_cookie_does_not_stand_in_for_the_secret_of_the_extension() -> None:
    served = ServedConsole()
    async with served.browser() as client:
        for headers in ({"origin": EXTENSION}, {"authorization": "Bearer wrong"}):
            answer = await client.get("/console/api/tools", headers={**OURS, **headers})
            assert answer.status_code == 401


async def test_the_browser_may_ask_what_it_may_send_for_a_page_of_the_extension_only() -> None:
    asks = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-opentabs-console",
        "access-control-request-private-network": "true",
    }
    async with ServedConsole().browser(signed_in=False) as client:
        url = "/console/api/call"
        answer = await client.options(url, headers={**asks, "origin": EXTENSION})
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == EXTENSION
        assert answer.headers["access-control-allow-private-network"] == "true"
        allowed = answer.headers["access-control-allow-headers"].split(", ")
        assert set(asks["access-control-request-headers"].split(",")) == set(allowed)
        for origin in ("https://evil.example", "chrome-extension://y", "null", OURS["origin"]):
            answer = await client.options(url, headers={**asks, "origin": origin})
            assert answer.status_code in (401, 403)
            assert "access-control-allow-origin" not in answer.headers


async def test_pages_of_the_extension_get_nothing_else_of_the_server() -> None:
    async with ServedConsole().browser(signed_in=False) as client:
        for path in ("/", "/status", "/console/main.js", "/console/apix", "/mcp"):
            assert (await client.get(path, headers=THEIRS)).status_code == 403


async def test_each_of_several_browsers_has_its_secret_and_no_secret_is_empty() -> None:
    bridges = [Bridge(secret=each, origin=EXTENSION) for each in ("a" * 64, "b" * 64)]
    several = pages_of(*bridges)
    assert several.knows("a" * 64)
    assert several.knows("b" * 64)
    assert not several.knows("c" * 64)
    assert not Bridge(secret="", origin="").knows("")
