"""Agents see and use any page through the hands."""

import base64
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import types
from mcp.client import Client
from playwright.async_api import Page
from playwright.async_api import Route as PageRoute
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from e2e.waiting import PATIENT
from opentabs_py.config.settings import Settings, load_settings
from opentabs_py.core.protocol import TabTarget
from opentabs_py.errors import CallRefusedError, ToolFailedError
from opentabs_py.hands import tools
from opentabs_py.hands.pages import Driven, HandPages
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs
from tests.server.test_own_tabs import origin

PASSWORD = 'correct "horse\\" battery: {staple}'

SHOP = """<!doctype html><title>Shop</title><h1>Shop</h1>
<nav><a href="/cart">Cart</a></nav>
<main>
<form onsubmit="event.preventDefault(); out.textContent = 'Sent ' + by.value + ' ' + size.value">
  <label>Name <input id="by"></label>
  <label>Size <select id="size"><option>small<option>large</select></label>
  <label>Photo <input type="file"
    onchange="out.textContent = this.files[0].name"></label>
  <button>Order</button>
</form>
<p id="out"></p>
<label>Search <input onkeydown="keys.textContent += event.key + ' '"></label><p id="keys"></p>
<input type="file" id="picked" hidden onchange="out.textContent = this.files[0].name">
<button onclick="picked.click()">Attach</button>
<button onclick="setTimeout(() => history.pushState(0, '', '/?step=2'), 300)">Next</button>
<button onclick="if (confirm('Really?')) out.textContent = 'Confirmed'">Ask</button>
<button onclick="out.textContent = prompt('Your size?')">Prompt</button>
<button onclick="setTimeout(() => out.textContent = 'Arrived', 900)">Later</button>
<button onclick="console.error('it broke'); fetch('/api/stock').then((r) => r.text())"
>Fetch</button>
<button id="covered">Covered</button>
<div style="position: absolute; inset: 0 0 auto auto">over</div>
<iframe
  srcdoc="<button onclick=&quot;this.textContent = 'Pressed'&quot;>Framed</button>"></iframe>
<div id="host"></div>
</main>
<script>
  host.attachShadow({ mode: "open" }).innerHTML = "<button>Shadowed</button>";
  host.shadowRoot.querySelector("button").onclick = () => (out.textContent = "From the shadow");
</script>
"""
LONG = "<!doctype html><title>Long</title><ul>" + "".join(
    f'<li><a href="/{n}">Item {n}</a> with a text that says something about it</li>'
    for n in range(900)
)


@dataclass
class Rig:
    tabs: OpenTabs
    url: str
    page: Page

    async def call(self, name: str, **arguments: Any) -> Any:
        return await self.tabs.call(f"page_{name}", arguments)

    async def open(self, path: str = "") -> str:
        await self.page.goto(self.url + path)
        return str((await self.call("snapshot"))["snapshot"])

    async def fails(self, code: str, name: str, **arguments: Any) -> str:
        with pytest.raises((ToolFailedError, CallRefusedError)) as caught:
            await self.call(name, **arguments)
        assert caught.value.detail.code == code
        return caught.value.detail.message


def ref(snapshot: str, what: str) -> str:
    """Return the reference of an element, such as `button "Order"`."""
    found = re.search(rf"{re.escape(what)}[^\n]*? ((?:f\d+)?e\d+)\b", snapshot)
    assert found is not None, snapshot
    return found[1]


def hand_settings(**more: Any) -> Settings:
    settings = load_settings(port=0, profile=None, headed=False)
    allowed = {"permissions": {"default": "auto"}}
    return settings.model_copy(update={"audit": False, "hands": True, **allowed, **more})


@pytest.fixture(scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Rig]:
    async def shop(_request: Request) -> Response:
        return HTMLResponse(SHOP)

    async def long(_request: Request) -> Response:
        return HTMLResponse(LONG)

    async def stock(_request: Request) -> Response:
        return JSONResponse({"left": 7, "for": PASSWORD})

    site = Starlette(
        routes=[
            Route("/", shop),
            Route("/cart", long),
            Route("/long", long),
            Route("/api/stock", stock),
        ]
    )
    listener = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    directory = tmp_path_factory.mktemp("hands")
    (directory / "photo.png").write_bytes(b"png")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SITE_PASSWORD", PASSWORD)
        patched.chdir(directory)
        async with (
            serve_http(site, listener),
            OpenTabs(settings=hand_settings(secrets=("SITE_PASSWORD",))) as tabs,
        ):
            yield Rig(tabs, url, await tabs.open(url))


async def test_a_snapshot_shows_what_can_be_used(rig: Rig) -> None:
    snapshot = await rig.open()
    for what in (
        'link "Cart"',
        'textbox "Name"',
        'button "Order"',
        'button "Shadowed"',
        'button "Framed"',
    ):
        assert ref(snapshot, what)
    assert 'combobox "Size"' in snapshot
    assert ": *small | large" in snapshot
    assert "heading1 " in snapshot


async def test_a_form_is_filled_in_and_sent(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("type", ref=ref(snapshot, 'textbox "Name"'), text="Ada")
    await rig.call("select", ref=ref(snapshot, 'combobox "Size"'), values=["large"])

    done = await rig.call("click", ref=ref(snapshot, 'button "Order"'))

    assert "Sent Ada large" in done["changed"]
    assert "Cart" not in done["changed"]


async def test_a_key_is_pressed_where_the_focus_is(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("type", ref=ref(snapshot, 'textbox "Name"'), text="Bob")
    done = await rig.call("press", key="Enter")
    assert "Sent Bob small" in done["changed"]


async def test_a_text_is_typed_key_by_key_where_a_page_reacts_to_each(rig: Rig) -> None:
    search = ref(await rig.open(), 'textbox "Search"')
    await rig.call("type", ref=search, text="old")
    done = await rig.call("type", ref=search, text="ab", slowly=True, submit=True)
    assert "a b Enter" in done["changed"]


async def test_a_key_is_pressed_on_an_element(rig: Rig) -> None:
    search = ref(await rig.open(), 'textbox "Search"')
    done = await rig.call("press", key="Shift+K", ref=search)
    assert "Shift K" in done["changed"]


@pytest.mark.parametrize(
    ("button", "shown"), [("Framed", 'button "Pressed"'), ("Shadowed", "From the shadow")]
)
async def test_frames_and_shadows_are_used_like_the_page(rig: Rig, button: str, shown: str) -> None:
    snapshot = await rig.open()
    done = await rig.call("click", ref=ref(snapshot, f'button "{button}"'))
    assert shown in done["changed"]


async def test_a_dialog_is_shown_and_answered(rig: Rig) -> None:
    snapshot = await rig.open()
    ask = ref(snapshot, 'button "Ask"')

    asked = await rig.call("click", ref=ask)
    blocked = await rig.fails("DIALOG_OPEN", "click", ref=ask)
    answered = await rig.call("dialog", accept=True)

    assert asked["dialog"] == {"type": "confirm", "message": "Really?"}
    assert "page_dialog" in blocked
    assert "Confirmed" in answered["changed"]
    await rig.fails("NO_DIALOG", "dialog", accept=True)


async def test_a_dialog_is_dismissed(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("click", ref=ref(snapshot, 'button "Ask"'))
    await rig.call("dialog", accept=False)
    assert "Confirmed" not in (await rig.call("snapshot"))["snapshot"]
    await rig.fails("NO_DIALOG", "dialog", accept=True)


async def test_a_prompt_is_answered_with_a_text(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("click", ref=ref(snapshot, 'button "Prompt"'))
    assert "Huge" in (await rig.call("dialog", accept=True, text="Huge"))["changed"]


async def test_what_comes_later_is_waited_for(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("click", ref=ref(snapshot, 'button "Later"'))
    await rig.call("wait_for", text="Arrived")
    assert "Arrived" in (await rig.call("snapshot"))["snapshot"]
    message = await rig.fails("ACTION_TIMED_OUT", "wait_for", text="Never", seconds=0.2)
    assert 'get_by_text("Never")' in message


async def test_an_address_is_waited_for(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("click", ref=ref(snapshot, 'button "Next"'))
    done = await rig.call("wait_for", url="step=2")
    assert done["url"].endswith("/?step=2")
    await rig.fails("INVALID_ARGUMENTS", "wait_for", url="step=2", text="Shop")
    await rig.fails("INVALID_ARGUMENTS", "wait_for")


async def test_an_element_that_is_gone_is_named_with_what_looks_like_it(rig: Rig) -> None:
    snapshot = await rig.open()
    order = ref(snapshot, 'button "Order"')
    await rig.page.evaluate(
        "document.querySelector('form button').outerHTML = '<button>Order</button>'"
    )

    message = await rig.fails("STALE_REF", "click", ref=order)

    [instead] = re.findall(r"Similar elements now: ((?:f\d+)?e\d+)", message)
    assert "Sent" in (await rig.call("click", ref=instead))["changed"]
    assert "no element e99999" in await rig.fails("STALE_REF", "click", ref="e99999")


async def test_a_click_that_was_done_is_not_to_be_repeated_though_the_next_page_is_late(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.open()
    await rig.page.evaluate("document.body.innerHTML = '<a href=/late>Pay</a>'")
    pay = ref((await rig.call("snapshot"))["snapshot"], 'link "Pay"')
    arrived, answered = anyio.Event(), anyio.Event()

    async def hold(route: PageRoute) -> None:
        arrived.set()
        await answered.wait()
        await route.abort()

    await rig.page.route("**/late", hold)
    monkeypatch.setattr(tools, "ACT_WITHIN", 5.0)  # enough for the click
    with pytest.raises(ToolFailedError) as caught:
        await rig.call("click", ref=pay)
    was_clicked = arrived.is_set()
    answered.set()
    await rig.page.unroute_all(behavior="wait")

    assert was_clicked
    detail = caught.value.detail
    assert (detail.code, detail.retryable) == ("ACTION_TIMED_OUT", False)
    assert "Do not click again" in detail.message


async def test_what_covers_an_element_is_named(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.page.evaluate(
        "document.querySelector('main > div').style.cssText = 'position: fixed; inset: 0'"
    )
    covered = ref(snapshot, 'button "Covered"')
    message = ""
    for _ in range(3):  # on a very busy machine, time may be up before the search starts
        message = await rig.fails("ACTION_TIMED_OUT", "click", ref=covered)
        if "intercepts pointer events" in message:
            break
    assert "intercepts pointer events" in message


async def test_a_long_list_is_folded_and_can_be_opened(rig: Rig) -> None:
    snapshot = await rig.open("long")
    more = re.search(
        r'… (\d+) more with (\d+) elements to use: page_snapshot\(ref="(\w+)", start=(\d+)\)',
        snapshot,
    )
    assert more is not None, snapshot[-500:]
    assert int(more[1]) == int(more[2]) == 900 - int(more[4])

    rest = await rig.call("snapshot", ref=more[3], start=890)

    assert [*re.findall(r'link "Item (\d+)"', rest["snapshot"])] == [
        str(n) for n in range(890, 900)
    ]


async def test_a_look_at_a_part_keeps_the_references_of_the_rest(rig: Rig) -> None:
    snapshot = await rig.open()
    part = await rig.call("snapshot", ref=ref(snapshot, 'combobox "Size"'))
    done = await rig.call("click", ref=ref(snapshot, 'button "Order"'))
    assert re.fullmatch(r'combobox "Size" \w+: \*small \| large', part["snapshot"])
    assert "Sent" in done["changed"]


async def test_a_part_that_is_gone_is_named(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.page.evaluate("document.querySelector('form').remove()")
    message = await rig.fails("STALE_REF", "snapshot", ref=ref(snapshot, 'button "Order"'))
    assert 'button "Order", is gone' in message
    assert "no element e99999" in await rig.fails("STALE_REF", "snapshot", ref="e99999")


async def test_only_what_is_new_is_shown(rig: Rig) -> None:
    await rig.open()
    assert (await rig.call("snapshot", changed=True))["snapshot"] == "(nothing has changed)"
    await rig.page.evaluate("out.textContent = 'News'")
    assert "News" in (await rig.call("snapshot", changed=True))["snapshot"]


@pytest.mark.parametrize(
    "editor",
    [
        "<div contenteditable><p>Old</p></div>",
        "<div contenteditable=true><p>Old</p><p>and <b>older</b></p></div>",
        "<iframe srcdoc='<body contenteditable><p>Old</p></body>'></iframe>",
    ],
)
async def test_an_editor_without_a_role_is_a_textbox(rig: Rig, editor: str) -> None:
    await rig.open()
    await rig.page.evaluate("(editor) => (document.body.innerHTML = editor)", editor)
    snapshot = (await rig.call("snapshot"))["snapshot"]
    assert "Old" in snapshot

    done = await rig.call("type", ref=ref(snapshot, "textbox"), text="News")

    assert "News" in done["changed"]
    assert "Old" not in (await rig.call("snapshot"))["snapshot"]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find all editors, however busy the machine is."""
    monkeypatch.setattr("opentabs_py.hands.editors.FOUND_WITHIN", PATIENT)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "editor",
    [
        "<div contenteditable style='height: 2em'></div>",
        "<section><div><div contenteditable><br></div></div></section>",
        "<iframe srcdoc='<body contenteditable></body>'></iframe>",
    ],
)
async def test_an_empty_editor_without_a_role_is_a_textbox(rig: Rig, editor: str) -> None:
    await rig.open()
    page = f"<h1>Write</h1><div contenteditable hidden></div>{editor}<h1>Send</h1>"
    await rig.page.evaluate("(page) => (document.body.innerHTML = page)", page)
    snapshot = (await rig.call("snapshot"))["snapshot"]
    assert re.search(r'"Write"\n(iframe.*\n )?textbox e0\d+\nheading1 "Send"', snapshot), snapshot
    empty = ref(snapshot, "textbox")
    await rig.page.evaluate("document.body.prepend(document.createElement('div'))")
    await rig.page.evaluate("document.body.firstChild.contentEditable = true")

    done = await rig.call("type", ref=empty, text="News")

    assert re.search(r"textbox focused (f\d+)?e[1-9]\d*: News", done["changed"]), done
    done = await rig.call("type", ref=empty, text="Later")  # it lives as long as its element
    assert "Later" in done["changed"]
    await rig.page.evaluate("document.body.replaceChildren()")
    await rig.fails("STALE_REF", "type", ref=empty, text="News")


@pytest.mark.usefixtures("patient")
async def test_empty_editors_are_told_apart_and_keep_their_references(rig: Rig) -> None:
    await rig.open()
    editor = "<div contenteditable style='height: 2em'></div>"
    page = f"{editor}<h1>A</h1><div><span></span>{editor}<p>B</p></div><main>{editor}</main>"
    await rig.page.evaluate("(page) => (document.body.innerHTML = page)", page)

    async def shown() -> list[str]:
        snapshot = (await rig.call("snapshot"))["snapshot"]
        return re.findall(r"e0\d+|\b[AB]\b|main", snapshot)

    first, *rest = await shown()
    _, second, *_, third = rest
    assert rest == ["A", second, "B", "main", third]
    assert len({first, second, third}) == 3
    await rig.page.evaluate("document.body.firstChild.remove()")
    assert await shown() == rest


@pytest.mark.usefixtures("patient")
async def test_empty_editors_that_are_gone_are_forgotten_by_several_frames_at_once(
    rig: Rig,
) -> None:
    await rig.open()
    editor = "<div contenteditable style='height: 2em'></div>"
    frames = "".join(f'<iframe srcdoc="{editor}"></iframe>' for _ in range(3))
    await rig.page.evaluate("(page) => (document.body.innerHTML = page)", editor + frames)
    for frame in rig.page.frames[1:]:
        await frame.wait_for_selector("[contenteditable]")
    before = (await rig.call("snapshot"))["snapshot"]
    assert len({*re.findall(r"e0\d+", before)}) == 4, before

    for frame in rig.page.frames:  # each has another editor now, which is looked up among the old
        await frame.evaluate("(html) => (document.querySelector('div').outerHTML = html)", editor)
    after = (await rig.call("snapshot"))["snapshot"]

    assert len({*re.findall(r"e0\d+", after)} - {*re.findall(r"e0\d+", before)}) == 4, after


async def test_a_secret_is_typed_and_never_shown(rig: Rig) -> None:
    snapshot = await rig.open()
    name = ref(snapshot, 'textbox "Name"')

    done = await rig.call("type", ref=name, text={"secret": "SITE_PASSWORD"}, submit=True)
    async with rig.page.expect_request_finished(lambda each: "stock" in each.url):
        await rig.call("click", ref=ref(snapshot, 'button "Fetch"'))
    listed = await rig.call("network", all=True)
    [stock] = [each["request"] for each in listed["requests"] if "stock" in each["url"]][-1:]
    bodies = await rig.call("network", request=stock)

    assert await rig.page.input_value("#by") == PASSWORD
    assert "Sent <secret SITE_PASSWORD>" in done["changed"]
    assert bodies["received"] == '{"left":7,"for":"<secret SITE_PASSWORD>"}'
    message = await rig.fails("UNKNOWN_SECRET", "type", ref=name, text={"secret": "OTHER"})
    assert "it has: SITE_PASSWORD" in message


async def test_what_is_in_a_password_field_is_hidden(rig: Rig) -> None:
    await rig.open()
    field = "<input type=password aria-label={} value={}>"
    await rig.page.evaluate(
        """([framed, own, shadowed]) => {
            document.querySelector("iframe").srcdoc = framed;
            document.querySelector("form").insertAdjacentHTML("beforeend", own);
            host.shadowRoot.innerHTML = shadowed;
        }""",
        [
            field.format("Framed", "hunter1"),
            field.format("Own", "hunter2") + "<input aria-label=User value=ada>",
            field.format("Shadowed", "hunter3"),
        ],
    )
    await rig.page.frame_locator("iframe").get_by_label("Framed").wait_for()
    snapshot = (await rig.call("snapshot"))["snapshot"]
    for name in ("Framed", "Own", "Shadowed"):
        assert re.search(rf'textbox "{name}" \w+: \(a password, hidden\)', snapshot)
    assert re.search(r'textbox "User" \w+: ada', snapshot)

    own = ref(snapshot, 'textbox "Own"')
    typed = await rig.call("type", ref=own, text={"secret": "SITE_PASSWORD"})
    assert ": <secret SITE_PASSWORD>" in typed["changed"]
    assert "hunter" not in snapshot + json.dumps(await rig.call("type", ref=own, text="hunter4"))


async def test_no_part_of_a_secret_is_shown_where_a_text_is_cut(rig: Rig) -> None:
    await rig.open()
    await rig.call("console")
    long = "x" * 990 + PASSWORD
    await rig.page.evaluate(
        "(long) => { console.log(long); document.title = long.slice(880) }", long
    )
    shown = await rig.call("console")
    assert [each["text"][:990] for each in shown["messages"]] == ["x" * 990]
    assert "corr" not in json.dumps(shown)
    assert "corr" not in (await rig.call("snapshot"))["title"]


async def test_neither_a_dialog_nor_a_failed_action_shows_a_secret(rig: Rig) -> None:
    snapshot = await rig.open()
    name, secret = ref(snapshot, 'textbox "Name"'), {"secret": "SITE_PASSWORD"}
    show = "document.querySelector('#by').onchange = (event) => alert(event.target.value)"
    await rig.page.evaluate(f"() => {{ {show} }}")
    done = await rig.call("type", ref=name, text=secret, submit=True)
    assert done["dialog"]["message"] == "<secret SITE_PASSWORD>"
    await rig.call("dialog", accept=True)
    await rig.page.evaluate("document.querySelector('#by').style.display = 'none'")
    message = await rig.fails("ACTION_TIMED_OUT", "type", ref=name, text=secret)
    assert PASSWORD not in message


async def test_tabs_are_listed_though_a_page_does_not_answer(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.open()
    busy = await rig.tabs.open(f"{rig.url}long")
    arrived, answered = anyio.Event(), anyio.Event()

    async def hold(route: PageRoute) -> None:
        arrived.set()
        await answered.wait()
        await route.fulfill()

    await busy.route("**/held", hold)
    await busy.evaluate(
        """() => void setTimeout(() => {
          const request = new XMLHttpRequest();
          request.open("GET", "/held", false);
          request.send();
        })"""
    )
    with anyio.fail_after(PATIENT):
        await arrived.wait()
    monkeypatch.setattr("opentabs_py.hands.used_page.TITLE_WITHIN", 5.0)  # enough for the other
    listed = (await rig.tabs.call("tabs_list"))["tabs"]
    answered.set()
    await busy.close()

    assert {each["url"]: each["title"] for each in listed} == {rig.url: "Shop", busy.url: ""}


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

    async def listed(who: str) -> bool:
        found = await rig.tabs.internals.tool_calls.call("page_network", {}, origin=origin(who))
        return bool(found["requests"])

    assert [await listed(who) for who in "aabb"] == [True, False, True, False]
    rig.tabs.internals.handle_client_gone("a")
    assert [await listed(who) for who in "ab"] == [True, False]


async def test_only_files_of_the_servers_directory_are_uploaded(rig: Rig, tmp_path: Path) -> None:
    snapshot = await rig.open()
    photo = ref(snapshot, 'button "Photo"')
    (tmp_path / "secret.txt").write_text("x")

    done = await rig.call("upload", ref=photo, files=["photo.png"])

    assert "photo.png" in done["changed"]
    await rig.fails("NOT_FOUND", "upload", ref=photo, files=[str(tmp_path / "secret.txt")])


async def test_a_file_is_uploaded_with_the_button_that_opens_the_chooser(rig: Rig) -> None:
    attach = ref(await rig.open(), 'button "Attach"')
    done = await rig.call("upload", ref=attach, files=["photo.png"])
    assert "photo.png" in done["changed"]


async def test_a_page_is_reloaded(rig: Rig) -> None:
    search = ref(await rig.open(), 'textbox "Search"')
    await rig.call("press", key="K", ref=search)
    reloaded = await rig.call("navigate", action="reload")
    assert reloaded["title"] == "Shop"
    assert await rig.page.text_content("#keys") == ""


async def test_a_tab_goes_to_addresses_and_back(rig: Rig) -> None:
    await rig.open()
    there = await rig.call("navigate", url=f"{rig.url}long")
    back = await rig.call("navigate", action="back")
    again = await rig.call("navigate", action="forward")
    assert [each["title"] for each in (there, back, again)] == ["Long", "Shop", "Long"]
    await rig.fails("INVALID_ARGUMENTS", "navigate", url="file:///etc/passwd")
    await rig.fails("INVALID_ARGUMENTS", "navigate")


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
    ("field", "what", "name", "arguments", "why"),
    [
        ("<input disabled>", "textbox", "type", {"text": "x"}, "textbox is disabled"),
        ("<input disabled>", "textbox", "type", {"text": "x", "slowly": True}, "is disabled"),
        ("<input readonly>", "textbox", "type", {"text": "x"}, "textbox is read-only"),
        ("<button disabled>Buy</button>", "button", "click", {}, 'button "Buy" is disabled'),
        (
            "<select disabled><option>A</select>",
            "combobox",
            "select",
            {"values": ["A"]},
            "is disabled",
        ),
        ("<input type=file disabled>", "button", "upload", {"files": ["photo.png"]}, "is disabled"),
    ],
)
async def test_an_action_on_a_disabled_element_says_so(
    rig: Rig, field: str, what: str, name: str, arguments: dict[str, Any], why: str
) -> None:
    await rig.open()
    await rig.page.set_content(field)
    used = ref((await rig.call("snapshot"))["snapshot"], what)
    assert why in await rig.fails("ACTION_FAILED", name, ref=used, **arguments)


async def test_an_option_that_is_not_there_fails_with_those_that_are(rig: Rig) -> None:
    await rig.open()
    await rig.page.set_content(
        "<select aria-label=Color><option>Red<optgroup label=Cold><option value=b>Blue</select>"
    )
    color = ref((await rig.call("snapshot"))["snapshot"], "combobox")
    said = await rig.fails("ACTION_FAILED", "select", ref=color, values=["Green"])
    assert 'combobox "Color" has no such option. It has: Red, Blue' in said


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for what comes soon, however busy the machine is."""
    monkeypatch.setattr("opentabs_py.hands.used_page.USABLE_WITHIN", PATIENT)


@pytest.mark.usefixtures("soon")
async def test_an_option_that_is_added_soon_is_waited_for(rig: Rig) -> None:
    await rig.open()
    await rig.page.set_content("<select><option>Red</select>")
    color = ref((await rig.call("snapshot"))["snapshot"], "combobox")
    await rig.page.evaluate(
        """() => {
          const select = document.querySelector("select");
          setTimeout(() => select.add(new Option("Green")), 500);
        }"""
    )
    assert "Green" in (await rig.call("select", ref=color, values=["Green"]))["changed"]


@pytest.mark.usefixtures("soon")
async def test_an_element_that_gets_enabled_is_waited_for(rig: Rig) -> None:
    await rig.open()
    await rig.page.set_content("<button disabled onclick='this.textContent = 1'>Buy</button>")
    buy = ref((await rig.call("snapshot"))["snapshot"], "button")
    await rig.page.evaluate(
        "() => void setTimeout(() => (document.querySelector('button').disabled = false), 500)"
    )
    assert 'button "1"' in (await rig.call("click", ref=buy))["changed"]


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


async def test_all_tabs_are_listed_and_may_be_named(rig: Rig) -> None:
    await rig.open()
    other = await rig.tabs.open(f"{rig.url}long")
    listed = (await rig.tabs.call("tabs_list"))["tabs"]
    by_title = {each["title"]: each["tabId"] for each in listed}

    shown = await rig.call("snapshot", tabId=by_title["Shop"])
    assert shown["title"] == "Shop"
    assert (await rig.call("snapshot"))["title"] == "Long"  # the active one
    await rig.fails("TAB_NOT_FOUND", "snapshot", tabId=12)
    await other.close()


async def test_looking_is_allowed_and_acting_is_asked_about() -> None:
    async with OpenTabs(settings=hand_settings(permissions={})) as tabs:
        await tabs.call("page_snapshot")
        with pytest.raises(CallRefusedError) as caught:
            await tabs.call("page_press", {"key": "a"})
    assert caught.value.detail.code == "CONSENT_NEEDED"
    assert '"hands.page_press" = "auto"' in caught.value.detail.message


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_question_names_the_page_and_the_element_and_the_call_stays_there(
    rig: Rig, mode: Any
) -> None:
    messages: list[str] = []

    async def allow(_context: Any, params: Any) -> types.ElicitResult:
        messages.append(params.message)
        await tabs.open(f"{rig.url}long")  # which is the active tab from now on
        return types.ElicitResult(action="accept", content={"answer": "once"})

    async with OpenTabs(settings=hand_settings(permissions={})) as tabs:
        await tabs.open(rig.url)
        callback: Any = allow
        async with Client(tabs.mcp_url, mode=mode, elicitation_callback=callback) as client:
            shown = (await client.call_tool("page_snapshot", {})).structured_content
            assert shown is not None
            click = {"ref": ref(shown["snapshot"], 'button "Ask"')}
            clicked = await client.call_tool("page_click", click)
            found = (await client.call_tool("tabs_list", {})).structured_content
            assert found is not None
            [shop] = [each["tabId"] for each in found["tabs"] if each["url"] == rig.url]
            await client.call_tool("page_dialog", {"tabId": shop, "accept": True})

    host = rig.url.removeprefix("http://").rstrip("/")
    asked = [message.partition("\n")[0].partition("” ")[2] for message in messages]
    assert asked[0] == f'on the button "Ask" on {host} (tab "Shop"). Allow it?'
    assert asked[1].startswith(f'on the confirm dialog "Really?" on {host}')
    assert not clicked.is_error, clicked.content
    assert clicked.structured_content is not None
    assert clicked.structured_content["dialog"]["message"] == "Really?"  # it was in the first tab


async def test_a_question_ends_when_the_tab_that_it_names_is_closed(rig: Rig) -> None:
    async def close(_context: Any, _params: Any) -> types.ElicitResult:
        await page.close()
        await anyio.sleep_forever()
        raise AssertionError

    async with OpenTabs(settings=hand_settings(permissions={})) as tabs:
        page = await tabs.open(rig.url)
        callback: Any = close
        async with Client(tabs.mcp_url, mode="legacy", elicitation_callback=callback) as client:
            with anyio.fail_after(PATIENT):
                result = await client.call_tool("page_press", {"key": "a"})

    assert isinstance(result.content[0], types.TextContent)
    assert "code=NOT_DELIVERED" in result.content[0].text


async def test_a_tab_that_a_click_opens_is_in_its_result_and_has_references_of_its_own(
    rig: Rig,
) -> None:
    await rig.open()
    await rig.page.evaluate("document.querySelector('nav a').target = '_blank'")
    link = ref((await rig.call("snapshot"))["snapshot"], 'link "Cart"')

    clicked = await rig.call("click", ref=link)

    [opened] = clicked["opened"]
    assert opened["url"] == f"{rig.url}cart"
    said = await rig.fails("STALE_REF", "click", ref=link)  # the new tab is the active one
    assert "pass the tabId of the tab that has it" in said
    there = await rig.call("snapshot", tabId=opened["tabId"])
    item = ref(there["snapshot"], 'link "Item 3"')
    done = await rig.call("click", ref=item, tabId=opened["tabId"])
    assert done["url"] == f"{rig.url}3"
    assert "opened" not in done
    await rig.page.context.pages[-1].close()


async def test_a_browser_that_was_closed_is_launched_again_by_the_next_call(rig: Rig) -> None:
    async with OpenTabs(settings=hand_settings(), reopen=[rig.url]) as tabs:
        await tabs.context.close()
        await tabs.browser.wait_gone()

        shown = await tabs.call("page_snapshot")

        assert 'heading1 "Shop"' in shown["snapshot"]


async def test_without_hands_there_are_no_such_tools() -> None:
    settings = hand_settings(hands=False)
    async with OpenTabs(settings=settings) as tabs:
        assert [tool.name for tool in tabs.tools if "page_" in tool.name] == []


async def test_a_tab_that_opens_while_tabs_are_looked_for_is_found(rig: Rig) -> None:
    context = rig.tabs.context
    opened: list[Page] = []

    async def browsers() -> Sequence[Driven]:
        return [Driven(context, attached=False)]

    async def targets() -> Sequence[TabTarget]:
        if not opened:  # after Playwright returned its pages
            opened.append(await context.new_page())
        session: Any = await context.new_cdp_session(opened[0])
        info = await session.send("Target.getTargetInfo")
        target = info["targetInfo"]["targetId"]
        return [TabTarget(tab_id=7, target_id=target, active=True, last_used=0)]

    found = await HandPages(browsers, targets, lambda: "", anyio.lowlevel.checkpoint).tabs(7)

    assert [(each.number, each.page) for each in found] == [(7, opened[0])]
    await opened[0].close()
