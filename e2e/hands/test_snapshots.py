"""Agents see what can be used in a page, and what has changed."""

import re
from typing import Any

import pytest

from e2e.hands.rig import Rig, ref
from e2e.waiting import PATIENT


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


async def test_what_changes_in_a_folded_part_is_shown(rig: Rig) -> None:
    snapshot = await rig.open("long")
    add = "document.body.insertAdjacentHTML('beforeend', '<dialog open>Cookies?</dialog>')"
    await rig.page.evaluate(f"document.links[0].onclick = () => {{ {add}; return false; }}")
    done = await rig.call("click", ref=ref(snapshot, 'link "Item 0"'))
    assert "Cookies?" in done["changed"]

    await rig.page.evaluate("document.links[898].textContent = 'Last but one'")
    again = await rig.call("press", key="a")
    assert 'link "Last but one"' in again["changed"]
    assert "Item 3" not in again["changed"]


@pytest.mark.parametrize("options", [{"links": True}, {"start": 3}])
async def test_changes_are_right_after_a_snapshot_with_other_options(
    rig: Rig, options: dict[str, Any]
) -> None:
    search = ref(await rig.open(), 'textbox "Search"')
    await rig.call("snapshot", **options)
    done = await rig.call("press", key="K", ref=search)
    assert "K" in done["changed"]
    assert not re.search("Cart|Order", done["changed"])


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


async def test_a_page_in_which_nothing_can_be_read_says_what_to_do(rig: Rig) -> None:
    await rig.open()
    done = await rig.call("navigate", url=f"{rig.url}paper.pdf")
    for text in (done["changed"], (await rig.call("snapshot"))["snapshot"]):
        assert (
            text == "(nothing to read: the page is empty, or drawn, as a PDF is; take a screenshot)"
        )


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
