"""Agents use checkboxes, radio buttons and file fields that a page draws itself."""

import re

import pytest

from e2e.hands.rig import Rig, ref
from opentabs_py.hands import drawn_inputs

STYLE = """<style>
.none { position: absolute; opacity: 0; width: 0; height: 0 }
.clipped { position: absolute; width: 1px; height: 1px; clip-path: inset(50%); overflow: hidden }
.behind { position: absolute; z-index: -1; opacity: 0 }
.deaf { position: absolute; opacity: 0; pointer-events: none }
.box { display: inline-block; width: 16px; height: 16px; background: silver }
</style>"""
INSIDE = '<label><input type={} class={}><span class="box"></span> Agree</label>'
BESIDE = '<input type={} class={} id="ä b"><label for="ä b">Agree</label>'


async def _show(rig: Rig, body: str) -> str:
    await rig.open()
    await rig.page.set_content(STYLE + body)
    return str((await rig.call("snapshot"))["snapshot"])


def _refs(snapshot: str) -> list[str]:
    return re.findall(r'checkbox "Agree" (\w+)', snapshot)


@pytest.mark.parametrize("label", [INSIDE, BESIDE])
@pytest.mark.parametrize("how", ["none", "clipped", "behind", "deaf"])
@pytest.mark.parametrize("kind", ["checkbox", "radio"])
async def test_a_drawn_input_has_a_reference_and_a_click_checks_it(
    rig: Rig, kind: str, how: str, label: str
) -> None:
    snapshot = await _show(rig, f"<p>{label.format(kind, how)}</p>")

    done = await rig.call("click", ref=ref(snapshot, f'{kind} "Agree"'))

    assert f'{kind} "Agree" checked' in done["changed"]


@pytest.mark.parametrize("label", [INSIDE, BESIDE])
async def test_an_input_is_checked_through_its_label_however_slow_its_page_is(
    rig: Rig, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_inputs, "UNCOVERED_WITHIN", 0.001)  # nothing is that fast
    snapshot = await _show(rig, f"<p>{label.format('radio', 'behind')}</p>")

    done = await rig.call("click", ref=ref(snapshot, 'radio "Agree"'))

    assert 'radio "Agree" checked' in done["changed"]


async def test_of_inputs_that_are_alike_the_one_with_the_reference_is_clicked(rig: Rig) -> None:
    rows = "".join(f"<li>{INSIDE.format('checkbox', 'none')} of row {n}</li>" for n in range(3))
    frame = f"{STYLE}{INSIDE.format('checkbox', 'deaf')}".replace('"', "&quot;")
    body = f"<div>{INSIDE.format('checkbox', 'deaf')}</div><ul>{rows}</ul>"
    snapshot = await _show(rig, f'<iframe srcdoc="{frame}"></iframe>{body}')
    refs = _refs(snapshot)
    assert len(set(refs)) == 5

    await rig.call("click", ref=refs[3])
    await rig.call("click", ref=refs[0])

    checked = "document.querySelectorAll('input:checked').length"
    assert await rig.page.locator("li").nth(1).get_by_role("checkbox").is_checked()
    assert await rig.page.evaluate(checked) == 1
    assert await rig.page.frame_locator("iframe").get_by_role("checkbox").is_checked()


async def test_a_reference_stays_with_its_input_when_those_before_it_go(rig: Rig) -> None:
    rows = "".join(f"<li>{INSIDE.format('checkbox', 'none')} of row {n}</li>" for n in range(2))
    snapshot = await _show(rig, f"<ul>{rows}</ul>")
    first, second = _refs(snapshot)
    await rig.page.locator("li").first.evaluate("row => row.remove()")

    await rig.fails("STALE_REF", "click", ref=first)
    done = await rig.call("click", ref=second)

    assert f'checkbox "Agree" checked focused {second}' in done["changed"]


async def test_inputs_that_are_alike_and_side_by_side_are_told_apart(rig: Rig) -> None:
    pair = "".join(BESIDE.format("checkbox", "none").replace("ä b", id_) for id_ in ("one", "two"))
    snapshot = await _show(rig, f"<p>{pair}</p>")

    await rig.call("click", ref=_refs(snapshot)[1])

    assert await rig.page.locator("#two").is_checked()
    assert not await rig.page.locator("#one").is_checked()


async def test_a_link_in_a_label_is_not_clicked_instead_of_its_input(rig: Rig) -> None:
    link = '<a href="#terms">I accept the terms</a>'
    label = INSIDE.format("checkbox", "none").replace("Agree", link)
    snapshot = await _show(rig, label.replace("<label", '<label style="display: inline-block"'))

    done = await rig.call("click", ref=ref(snapshot, 'checkbox "I accept the terms"'))

    assert 'checkbox "I accept the terms" checked' in done["changed"]
    assert "#terms" not in done["url"]


async def test_files_are_chosen_in_a_drawn_field(rig: Rig) -> None:
    field = BESIDE.format("file", "clipped").replace(
        "<input", "<input onchange='out.textContent = this.files[0].name'"
    )
    snapshot = await _show(rig, f"{field}<p id=out>")
    button = ref(snapshot, 'button "Agree"')
    assert "photo.png" in (await rig.call("upload", ref=button, files=["photo.png"]))["changed"]


async def test_what_covers_the_label_too_is_named(rig: Rig) -> None:
    cover = '<div id="cover" style="position: fixed; inset: 0"></div>'
    snapshot = await _show(rig, INSIDE.format("checkbox", "behind") + cover)
    said = await rig.fails("ACTION_TIMED_OUT", "click", ref=ref(snapshot, 'checkbox "Agree"'))
    assert 'id="cover"' in said


async def test_the_heading_of_details_opens_them(rig: Rig) -> None:
    snapshot = await _show(rig, "<details><summary><h3>More</h3></summary>All about it</details>")
    done = await rig.call("click", ref=ref(snapshot, 'heading3 "More"'))
    assert "All about it" in done["changed"]
