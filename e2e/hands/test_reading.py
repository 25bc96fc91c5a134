"""Agents read the console, the network and screenshots of a page."""

import base64
import json
import re
from typing import Any

import pytest
from mcp.client import Client

from e2e.hands.rig import Rig, ref
from tests.server.test_own_tabs import origin


async def test_the_console_and_the_network_are_read_since_the_last_time(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("console")
    await rig.call("network")
    async with rig.page.expect_request_finished(lambda each: "stock" in each.url):
        await rig.call("click", ref=ref(snapshot, 'button "Fetch"'))

    assert {"type": "error", "text": "it broke"} in (await rig.call("console"))["messages"]
    assert (await rig.call("console"))["messages"] == []
    requests = (await rig.call("network"))["requests"]
    [request] = [each for each in requests if "stock" in each["url"]]
    again = (await rig.call("network"))["requests"]
    assert not any("stock" in each["url"] for each in again)
    assert (request["method"], request["status"], request["type"]) == ("GET", 200, "fetch")
    await rig.fails("NOT_FOUND", "network", request=99_999)


async def test_each_client_reads_what_is_new_to_it(rig: Rig) -> None:
    await rig.open()
    url = rig.tabs.mcp_url
    async with Client(url, mode="legacy") as one, Client(url, mode="legacy") as other:

        async def read(client: Client, name: str, **arguments: Any) -> str:
            return json.dumps(
                (await client.call_tool(f"page_{name}", arguments)).structured_content
            )

        clients = (one, other)
        for each in clients:
            await read(each, "console")
            await read(each, "network")
            await read(each, "snapshot")
        async with rig.page.expect_request_finished(lambda each: "stock" in each.url):
            await rig.page.evaluate(
                "out.textContent = 'News'; console.log('hi'); fetch('/api/stock')"
            )

        for name, new in (("console", "hi"), ("network", "stock")):
            assert [new in await read(each, name) for each in clients] == [True, True]
            assert [new in await read(each, name) for each in clients] == [False, False]
            assert new in json.dumps(await rig.call(name))
        looks = [await read(each, "snapshot", changed=True) for each in (*clients, *clients)]
        assert ["News" in each for each in looks] == [True, True, False, False]
        assert "News" in (await rig.call("snapshot", changed=True))["snapshot"]


async def test_what_a_client_has_seen_is_forgotten_when_it_goes(rig: Rig) -> None:
    await rig.open()
    await rig.call("network")  # from now on, its requests are recorded
    await rig.open()

    async def listed(who: str) -> bool:
        found = await rig.tabs.internals.tool_calls.call("page_network", {}, origin=origin(who))
        return bool(found["requests"])

    assert [await listed(who) for who in "aabb"] == [True, False, True, False]
    rig.tabs.internals.handle_client_gone("a")
    assert [await listed(who) for who in "ab"] == [True, False]


async def test_a_screenshot_is_taken(rig: Rig) -> None:
    await rig.open()
    result = await rig.tabs.call_tool("page_screenshot", {})
    [image] = result.content
    assert image.type == "image"
    assert base64.b64decode(image.data)[:3] == b"\xff\xd8\xff"


def size_of(image: Any) -> tuple[int, int]:
    """Return the width and the height of a JPEG."""
    found = re.search(rb"\xff\xc0\x00\x11\x08(..)(..)", base64.b64decode(image.data), re.DOTALL)
    assert found is not None
    return int.from_bytes(found[2]), int.from_bytes(found[1])


HOSTILE = """
  Array.prototype.slice = () => { throw new Error("no slice"); };
  Array.prototype.push = () => { throw new Error("no push"); };
  Element.prototype.matches = () => { throw new Error("no matches"); };
  globalThis.Map = null;
"""


async def test_a_page_that_replaces_builtins_is_used_all_the_same(rig: Rig) -> None:
    await rig.page.goto(rig.url)
    editor = '<div contenteditable style="height: 9000px; width: 50px; background: red"></div>'
    await rig.page.evaluate("(html) => document.body.insertAdjacentHTML('beforeend', html)", editor)
    await rig.page.add_script_tag(content=HOSTILE)
    snapshot = (await rig.call("snapshot"))["snapshot"]

    done = await rig.call("upload", ref=ref(snapshot, "Photo"), files=["photo.png"])
    [image] = (await rig.tabs.call_tool("page_screenshot", {"full": True})).content

    assert "photo.png" in done["changed"]
    assert size_of(image) == (1280, 8000)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        ((100, 100), (1280, 720)),
        ((1920, 4000), (1920, 4000)),
        ((1920, 9000), (1920, 8000)),
        ((9000, 100), (8000, 720)),
    ],
)
async def test_the_first_pixels_of_a_large_page_are_shown_in_its_whole_width(
    rig: Rig, size: tuple[int, int], shown: tuple[int, int]
) -> None:
    await rig.open()
    width, height = size
    body = f"<body style='margin: 0'><div style='width: {width}px; height: {height}px'></div>"
    await rig.page.set_content(body)
    await rig.page.evaluate("scrollTo(50, 200)")
    [image] = (await rig.tabs.call_tool("page_screenshot", {"full": True})).content
    assert size_of(image) == shown


async def test_a_screenshot_is_taken_of_one_element(rig: Rig) -> None:
    order = ref(await rig.open(), 'button "Order"')
    [whole] = (await rig.tabs.call_tool("page_screenshot", {})).content
    [small] = (await rig.tabs.call_tool("page_screenshot", {"ref": order})).content
    assert whole.type == small.type == "image"
    assert base64.b64decode(small.data)[:3] == b"\xff\xd8\xff"
    assert len(small.data) < len(whole.data) / 3
    await rig.fails("STALE_REF", "screenshot", ref="e99999")
