"""In which document a call runs, decided from the tabs and the time alone."""

import pytest

from opentabs_py.core import failures
from opentabs_py.core.protocol import DocumentState, PluginState
from opentabs_py.core.tabs.placement import LONGEST, REDIRECTS, Placement, QueryTabs
from opentabs_py.core.tabs.selection import Tabs, Target, Wait
from opentabs_py.errors import ChainError

CHAT = Target("chat", ("https://chat.example/*",))
LOST = failures.lost("not_delivered")


def tabs(*readiness: str) -> Tabs:
    """Return tabs that each have a document with the plugin in this state, injected at 0."""
    made = Tabs()
    made.connection_changed(connected=True, now=0.0)
    documents = [
        DocumentState(
            document_id=f"{number:032x}",
            tab_id=number,
            url="https://chat.example/",
            title="",
            active=True,
            focused=True,
            protected=True,
            calls=[],
            plugins={"chat": PluginState.model_validate({"readiness": each})},
        )
        for number, each in enumerate(readiness)
    ]
    made.update(documents, 0.0)
    return made


def code_of(placement: Placement, made: Tabs) -> str:
    with pytest.raises(ChainError) as caught:
        placement.step(made, 9.0)
    return caught.value.detail.code


def test_a_call_runs_in_a_document_that_is_ready() -> None:
    made = tabs("ready")
    assert Placement(CHAT).step(made, 1.0) is made.documents[0]


def test_no_call_is_placed_while_its_browser_holds_them_back() -> None:
    made = tabs("ready")
    made.held_until = 5.0
    made.advice = "Open the browser."
    held = Placement(CHAT).step(made, 4.9)
    assert isinstance(held, Wait)
    assert held.until == 5.0
    assert "Open the browser." in str(held.error)
    assert Placement(CHAT).step(made, 5.0) is made.documents[0]


def test_a_plugin_that_was_just_injected_is_waited_for() -> None:
    assert isinstance(Placement(CHAT).step(tabs("pending"), 1.0), Wait)


def test_a_page_that_reloads_again_and_again_is_not_waited_for_without_end() -> None:
    placement, made = Placement(CHAT), tabs("pending")
    for now in range(1, 21):
        [document] = made.documents
        made.update([document.model_copy(update={"document_id": f"{now:032x}"})], now)
        waits = placement.step(made, now)
        assert isinstance(waits, Wait)
        assert waits.until == min(now + made.grace, 1 + LONGEST)
    with pytest.raises(ChainError, match="not ready"):
        placement.step(made, 1 + LONGEST)


def test_a_page_that_is_left_after_a_long_wait_is_waited_for_again() -> None:
    placement, made = Placement(CHAT), tabs("pending")
    placement.step(made, 1.0)
    assert placement.retry(LOST)
    assert placement.step(made, 1 + LONGEST) == QueryTabs()
    made.update([made.documents[0].model_copy(update={"document_id": "f" * 32})], 1 + LONGEST)
    assert isinstance(placement.step(made, 1 + LONGEST), Wait)


@pytest.mark.parametrize(
    ("readiness", "code"),
    [
        ((), "TAB_NOT_FOUND"),
        (("unavailable",), "TAB_NOT_READY"),
        (("missing",), "PLUGIN_NOT_LOADED"),
    ],
)
def test_the_extension_is_asked_once_before_a_call_fails_for_lack_of_a_tab(
    readiness: tuple[str, ...], code: str
) -> None:
    placement, made = Placement(CHAT), tabs(*readiness)
    assert placement.step(made, 9.0) == QueryTabs("chat")
    assert code_of(placement, made) == code


def test_without_a_connection_nobody_is_asked() -> None:
    assert code_of(Placement(CHAT), Tabs()) == "EXTENSION_NOT_CONNECTED"


def test_a_call_whose_page_left_is_placed_again_once_the_tabs_are_known() -> None:
    placement, made = Placement(CHAT), tabs("ready")
    placement.step(made, 1.0)
    assert placement.retry(LOST)
    assert placement.step(made, 1.0) == QueryTabs()
    assert placement.step(made, 1.0) is made.documents[0]


def test_after_a_page_left_the_extension_may_be_asked_again() -> None:
    placement = Placement(CHAT)
    assert placement.step(tabs(), 9.0) == QueryTabs("chat")
    assert placement.retry(LOST)
    assert placement.step(tabs(), 9.0) == QueryTabs()
    assert placement.step(tabs(), 9.0) == QueryTabs("chat")


def test_pages_that_leave_one_after_another_end_the_search() -> None:
    placement = Placement(CHAT)
    assert [placement.retry(LOST) for _ in range(REDIRECTS + 1)] == [True] * REDIRECTS + [False]


def test_a_tool_that_may_have_run_is_never_started_elsewhere() -> None:
    assert not Placement(CHAT).retry(failures.lost("navigated"))
