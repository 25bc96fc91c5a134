"""Which tab is chosen for which plugin."""

import pytest

from opentabs_py.core import failures
from opentabs_py.core.protocol import DocumentState, LoadingTab, PluginState
from opentabs_py.core.sites.instances import Instance, Instances
from opentabs_py.core.tabs.selection import Tabs, Target, Wait, ready_by_plugin
from opentabs_py.errors import ChainError

PATTERNS = ("https://chat.example/*", "https://www.chat.example/*")


def document(
    tab_id: int,
    readiness: str = "ready",
    *,
    reason: str | None = None,
    active: bool = False,
    focused: bool = False,
    plugin: str = "chat",
) -> DocumentState:
    state = PluginState.model_validate({"readiness": readiness, "reason": reason})
    return DocumentState(
        document_id=f"{tab_id:032x}",
        tab_id=tab_id,
        url=f"https://chat.example/{tab_id}",
        title="",
        active=active,
        focused=focused,
        protected=True,
        calls=[],
        plugins={plugin: state},
    )


def tabs(*documents: DocumentState) -> Tabs:
    """Return tabs, connected at 0, whose documents all appeared at 0."""
    made = Tabs(grace=5.0)
    made.connection_changed(connected=True, now=0.0)
    made.update(documents, 0.0)
    return made


def chosen(made: Tabs, *, tab_id: int | None = None, now: float = 100.0) -> int:
    choice = made.choose(Target("chat", PATTERNS, tab_id), now)
    assert isinstance(choice, DocumentState)
    return choice.tab_id


def refused(made: Tabs, *, tab_id: int | None = None, now: float = 100.0) -> ChainError:
    choice = made.choose(Target("chat", PATTERNS, tab_id), now)
    assert isinstance(choice, ChainError)
    return choice


INSTANCES = Instances({"a": ("https://chat.example/1",), "b": ("https://chat.example/2",)})


def for_instance(
    name: str,
    made: Tabs,
    *,
    tab_id: int | None = None,
    client: str | None = None,
    now: float = 100.0,
) -> DocumentState | Wait | ChainError:
    instance = Instance(name, INSTANCES)
    return made.choose(Target("chat", PATTERNS, tab_id, instance, client), now)


# --- the choice ---


def test_the_active_tab_of_the_focused_window_wins() -> None:
    made = tabs(document(3), document(1, active=True, focused=True), document(2, active=True))
    assert chosen(made) == 1


def test_without_one_in_the_focused_window_an_active_tab_wins() -> None:
    made = tabs(document(3, focused=True), document(2, active=True), document(1))
    assert chosen(made) == 2


def test_of_tabs_in_the_background_the_newest_wins() -> None:
    assert chosen(tabs(document(1), document(3), document(2))) == 3


def test_a_tab_id_picks_exactly_that_tab() -> None:
    made = tabs(document(1, active=True, focused=True), document(2))
    assert chosen(made, tab_id=2) == 2


def test_a_tab_id_without_the_plugin_is_refused_and_the_others_are_named() -> None:
    error = refused(tabs(document(1), document(2)), tab_id=9)
    assert error.detail.code == "TAB_NOT_FOUND"
    assert "Tab 9" in str(error)
    assert "Tabs that do: 2, 1." in str(error)
    assert "'chat'" in str(error)


def test_a_tab_id_that_is_not_ready_is_refused_though_another_tab_is() -> None:
    made = tabs(
        document(1, active=True),
        document(2, "unavailable", reason="isReady() threw: not signed in"),
    )
    error = refused(made, tab_id=2)
    assert error.detail.code == "TAB_NOT_READY"
    assert "not signed in" in str(error)
    assert not error.detail.retryable


def test_a_tab_of_another_plugin_is_refused() -> None:
    error = refused(tabs(document(1, plugin="mail")))
    assert error.detail.code == "TAB_NOT_FOUND"
    assert "https://chat.example/ or https://www.chat.example/" in str(error)
    assert "'chat'" in str(error)


def test_only_documents_in_which_a_plugin_is_ready_count_as_its_own() -> None:
    shown = [document(1), document(2), document(3, "pending"), document(4, plugin="mail")]
    assert ready_by_plugin(shown) == {"chat": 2, "mail": 1}


def test_only_a_page_whose_plugin_says_so_is_one_to_sign_in_on() -> None:
    states = [
        ("unavailable", None),
        ("unavailable", "isReady() threw: no"),
        ("missing", "scripts cannot run in this page"),
        ("missing", "isReady() threw: no"),
    ]
    made = [tabs(document(1, readiness, reason=reason)) for readiness, reason in states]
    found = [failures.needs_sign_in(refused(each, now=9.0)) for each in made]
    assert found == [True, True, False, False]


def test_a_page_in_which_the_plugin_does_not_run_is_refused_with_the_reason() -> None:
    given = tabs(document(1, "missing", reason="its adapter did not register itself in the page"))
    error = refused(given, now=9.0)
    assert (error.detail.code, error.detail.retryable) == ("PLUGIN_NOT_LOADED", False)
    assert "did not register itself in the page. Reload the page" in str(error)
    said = "'chat' does not run in https://chat.example/1: its adapter is not there."
    assert said in str(refused(tabs(document(1, "missing")), now=9.0))


def test_a_page_that_is_not_ready_and_does_not_say_why_is_refused_with_its_address() -> None:
    said = "'chat' is not ready in https://chat.example/1: isReady() is not true."
    assert said in str(refused(tabs(document(1, "unavailable")), now=9.0))


# --- waiting ---


def test_a_new_document_that_is_not_ready_is_waited_for() -> None:
    choice = tabs(document(1, "pending")).choose(Target("chat", PATTERNS), 4.999)
    assert isinstance(choice, Wait)
    assert choice.until == 5.0
    assert choice.error.detail.code == "TAB_NOT_READY"
    assert choice.error.detail.retryable
    said = "'chat' is not ready in https://chat.example/1: isReady() has not answered yet."
    assert said in str(choice.error)


def test_a_document_that_is_not_ready_after_the_grace_is_refused() -> None:
    made = tabs(document(1, "pending"))
    error = refused(made, now=5.0)
    assert error.detail.code == "TAB_NOT_READY"
    said = "'chat' is not ready in https://chat.example/1: isReady() has not answered yet."
    assert said in str(error)


def test_a_document_that_has_not_loaded_is_refused_with_that_reason() -> None:
    made = tabs(document(1, "pending", reason="the page is loading"))
    assert "/1: the page is loading. " in str(refused(made, now=5.0))


def test_an_old_document_that_is_not_ready_yields_to_the_next() -> None:
    made = tabs(document(1, "unavailable", active=True, focused=True), document(2))
    assert chosen(made, now=5.0) == 2


def test_a_new_document_that_is_not_ready_does_not_give_way() -> None:
    made = tabs(document(1, "pending", active=True, focused=True), document(2))
    assert isinstance(made.choose(Target("chat", PATTERNS), 4.0), Wait)


def test_the_refusal_names_the_tab_that_a_call_would_use_first() -> None:
    made = tabs(document(2, "pending"), document(1, "unavailable", active=True))
    assert "https://chat.example/1" in str(refused(made))


def test_a_document_keeps_its_age_when_its_state_is_reported_again() -> None:
    made = tabs(document(1, "pending"))
    made.update([document(1, "pending"), document(2, "pending")], 3.0)
    assert refused(made, tab_id=1, now=5.0).detail.code == "TAB_NOT_READY"
    assert isinstance(made.choose(Target("chat", PATTERNS, 2), 5.0), Wait)
    made.update([document(1, "pending")], 6.0)
    assert refused(made, tab_id=1, now=6.0).detail.code == "TAB_NOT_READY"


def test_a_document_that_is_no_longer_listed_is_gone() -> None:
    made = tabs(document(1))
    made.update([], 1.0)
    assert refused(made).detail.code == "TAB_NOT_FOUND"


def test_a_newer_adapter_in_an_old_document_is_waited_for() -> None:
    made = tabs(document(1))
    made.update([document(1, "pending")], 50.0)
    made.update([document(1, "pending")], 52.0)
    made.update([document(1, "unavailable")], 53.0)
    choice = made.choose(Target("chat", PATTERNS), 54.999)
    assert isinstance(choice, Wait)
    assert choice.until == 55.0
    assert refused(made, now=55.0).detail.code == "TAB_NOT_READY"


def test_a_plugin_that_comes_to_an_old_document_is_waited_for() -> None:
    made = tabs(document(1, plugin="mail"))
    made.update([document(1, "pending")], 50.0)
    assert isinstance(made.choose(Target("chat", PATTERNS), 54.999), Wait)


def test_a_plugin_that_stops_being_ready_by_itself_is_not_waited_for() -> None:
    made = tabs(document(1))
    made.update([document(1, "unavailable")], 50.0)
    assert refused(made, now=50.0).detail.code == "TAB_NOT_READY"


# --- the link ---


def test_without_an_extension_ever_a_call_fails_at_once() -> None:
    assert refused(Tabs(), now=0.0).detail.code == "EXTENSION_NOT_CONNECTED"


def test_an_extension_that_just_went_is_waited_for() -> None:
    made = tabs(document(1))
    made.connection_changed(connected=False, now=10.0)
    choice = made.choose(Target("chat", PATTERNS), 14.999)
    assert isinstance(choice, Wait)
    assert (choice.until, choice.error.detail.code) == (15.0, "EXTENSION_NOT_CONNECTED")
    assert refused(made, now=15.0).detail.code == "EXTENSION_NOT_CONNECTED"


def test_an_extension_whose_browser_is_gone_is_not_waited_for() -> None:
    made = tabs(document(1))
    made.connection_changed(connected=False, now=10.0)
    made.has_browser, made.advice = False, "Open the browser."
    error = refused(made, now=10.0)
    assert error.detail.code == "EXTENSION_NOT_CONNECTED"
    assert "Open the browser." in str(error)


def test_what_the_user_should_do_is_known_while_something_is_missing() -> None:
    made = Tabs(advice="Click Allow.")
    assert made.user_action == "Click Allow."
    made.connection_changed(connected=True, now=1.0)
    assert made.user_action == ""
    made.lacks_debugging = True
    assert made.user_action == "Click Allow."


def test_the_link_takes_the_documents_with_it() -> None:
    made = tabs(document(1))
    made.connection_changed(connected=False, now=10.0)
    assert (made.documents, made.status("chat")) == ((), "closed")
    made.connection_changed(connected=True, now=11.0)
    assert refused(made).detail.code == "TAB_NOT_FOUND"


# --- the state of a plugin ---


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ([], "closed"),
        (["pending"], "unavailable"),
        (["unavailable", "pending"], "unavailable"),
        (["unavailable", "ready"], "ready"),
    ],
)
def test_a_plugin_is_as_ready_as_its_readiest_tab(states: list[str], status: str) -> None:
    made = tabs(*(document(tab_id, state) for tab_id, state in enumerate(states)))
    assert made.status("chat") == status


# --- tabs whose document has not reported yet ---


def loading(made: Tabs, *tab_ids: int, now: float = 0.0) -> Tabs:
    made.update(made.documents, now, loading=[
        LoadingTab(tab_id=tab_id, url=f"https://chat.example/{tab_id}", plugins=["chat"])
        for tab_id in tab_ids
    ])  # fmt: skip
    return made


def test_a_tab_that_is_loading_is_waited_for_where_no_document_is() -> None:
    choice = loading(tabs(), 1).choose(Target("chat", PATTERNS), 4.999)
    assert isinstance(choice, Wait)
    assert choice.until == 5.0
    assert "The plugin 'chat' is not ready in " in str(choice.error)
    assert "/1: the page is loading, or its site cannot be reached. " in str(choice.error)


def test_a_tab_that_still_loads_after_the_grace_is_refused() -> None:
    made = loading(loading(tabs(), 1), 1, now=4.0)
    assert refused(made, now=5.0).detail.code == "TAB_NOT_READY"


def test_a_ready_document_is_used_although_another_tab_is_loading() -> None:
    assert chosen(loading(tabs(document(1)), 2)) == 1


def test_a_tab_id_that_is_loading_is_waited_for_and_another_that_is_not_here_refused() -> None:
    made = loading(tabs(document(1)), 2)
    assert isinstance(made.choose(Target("chat", PATTERNS, 2), 4.0), Wait)
    assert refused(made, tab_id=3).detail.code == "TAB_NOT_FOUND"


def test_a_tab_that_never_finishes_loading_leaves_others_their_grace() -> None:
    made = loading(loading(tabs(), 1), 1, 2, now=100.0)
    choice = made.choose(Target("chat", PATTERNS), 101.0)
    assert isinstance(choice, Wait)
    assert choice.until == 105.0
    assert "/2: the page is loading, or its site cannot be reached. " in str(choice.error)
    assert refused(made, tab_id=1, now=101.0).detail.code == "TAB_NOT_READY"


def test_a_tab_that_loads_again_has_its_whole_grace_again() -> None:
    made = loading(loading(loading(tabs(), 1), now=3.0), 1, now=4.0)
    assert isinstance(made.choose(Target("chat", PATTERNS), 8.999), Wait)
    made.connection_changed(connected=False, now=9.0)
    made.connection_changed(connected=True, now=10.0)
    assert isinstance(loading(made, 1, now=10.0).choose(Target("chat", PATTERNS), 14.999), Wait)


# --- instances ---


def test_of_several_instances_the_tab_of_the_named_one_is_used() -> None:
    made = tabs(document(1), document(2, active=True, focused=True), document(3))
    choice = for_instance("a", made)
    assert isinstance(choice, DocumentState)
    assert choice.tab_id == 1


def test_an_instance_without_a_tab_is_named_though_another_has_one() -> None:
    choice = for_instance("b", tabs(document(1)))
    assert isinstance(choice, ChainError)
    assert choice.detail.code == "TAB_NOT_FOUND"
    assert "and its instance 'b'. Open https://chat.example/ or" in str(choice)


def test_a_client_whose_tab_shows_another_instance_is_told_so() -> None:
    made = tabs(document(1), document(2))
    made.owners.add(1, "a", ["chat"])
    found = for_instance("b", made, client="a")
    assert isinstance(found, ChainError)
    assert "Tab 1, which you opened for the plugin 'chat', shows no page of its instance 'b':" in (
        str(found)
    )


@pytest.mark.parametrize(
    ("tab_id", "what"),
    [
        (1, "Tab 1 shows the instance 'a' of the plugin 'chat', not 'b'. Leave out tabId"),
        (3, "Tab 3 shows no instance of the plugin 'chat', not 'b'."),
    ],
)
def test_a_tab_of_another_instance_is_refused(tab_id: int, what: str) -> None:
    choice = for_instance("b", tabs(document(1), document(2), document(3)), tab_id=tab_id)
    assert isinstance(choice, ChainError)
    assert what in str(choice)


def test_a_tab_of_the_instance_may_be_named_too() -> None:
    choice = for_instance("b", tabs(document(1), document(2)), tab_id=2)
    assert isinstance(choice, DocumentState)
    assert choice.tab_id == 2


def test_a_tab_that_loads_is_waited_for_only_by_calls_for_its_instance() -> None:
    made = loading(tabs(), 1)
    assert isinstance(for_instance("a", made, now=0.0), Wait)
    assert isinstance(for_instance("b", made, now=0.0), ChainError)
    assert "shows the instance 'a'" in str(for_instance("b", made, tab_id=1, now=0.0))


# --- client-owned tabs ---


def chosen_for(
    client: str | None, made: Tabs, tab_id: int | None = None, now: float = 100.0
) -> DocumentState | Wait | ChainError:
    return made.choose(Target("chat", PATTERNS, tab_id, client=client), now)


def choice(client: str | None, made: Tabs, tab_id: int | None = None) -> int | str:
    """Return the tab that is chosen, or the code of the error."""
    found = chosen_for(client, made, tab_id)
    assert not isinstance(found, Wait)
    return found.tab_id if isinstance(found, DocumentState) else found.detail.code


def test_a_client_stays_in_its_own_tab_and_others_in_the_users() -> None:
    made = tabs(document(1, active=True, focused=True), document(2), document(3))
    made.owners.add(2, "a")
    made.owners.add(3, "b")
    assert [choice(client, made) for client in ("a", "b", "c", None)] == [2, 3, 1, 1]


def test_of_its_own_tabs_a_client_uses_the_one_it_used_last() -> None:
    made = tabs(document(1), document(2), document(3))
    made.owners.add(3, "a")
    made.owners.add(2, "a")
    assert choice("a", made) == 2
    made.owners.use(3, "chat")
    assert choice("a", made) == 3


def test_a_tab_of_another_client_is_as_good_as_none_and_cannot_be_named() -> None:
    made = tabs(document(2, active=True, focused=True))
    made.owners.add(2, "a")
    assert choice("b", made) == "TAB_NOT_FOUND"
    assert choice("b", made, tab_id=2) == "TAB_NOT_YOURS"
    theirs = str(chosen_for("b", made, tab_id=2))
    assert "Tab 2 belongs to another client" in theirs
    assert "for the plugin 'chat'" in theirs
    assert choice("a", made, tab_id=2) == 2
    assert choice(None, made, tab_id=2) == 2


def test_the_error_for_a_wrong_tab_does_not_name_those_of_others() -> None:
    made = tabs(document(1), document(2))
    made.owners.add(2, "a")
    error = chosen_for("b", made, tab_id=9)
    assert "Tabs that do: 1. " in str(error)


def test_a_client_whose_tab_was_for_the_plugin_does_not_use_the_users() -> None:
    made = tabs(document(1, active=True, focused=True))
    made.owners.add(2, "a", ["chat"])
    found = chosen_for("a", made)
    assert isinstance(found, ChainError)
    assert found.detail.code == "TAB_NOT_FOUND"
    assert "which you opened for the plugin 'chat', shows no page of that plugin:" in str(found)
    assert choice("a", made, tab_id=1) == 1
    assert choice("b", made) == 1


def test_a_client_waits_for_its_own_tab_to_load_though_the_users_is_ready() -> None:
    made = tabs(document(1))
    made.owners.add(2, "a")
    coming = LoadingTab(tab_id=2, url="https://chat.example/2", plugins=["chat"])
    made.update([document(1)], 10.0, loading=[coming])
    assert isinstance(chosen_for("a", made, now=10.0), Wait)
    assert choice("b", made) == 1
