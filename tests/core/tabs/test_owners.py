"""Which tabs belong to which clients, and which of them a call may use."""

from opentabs_py.core.tabs.owners import TabOwners


def owners(**tabs: tuple[int, ...]) -> TabOwners:
    """Return the owners of these tabs by client; the tabs were opened in this order."""
    made = TabOwners()
    for client, numbers in tabs.items():
        for tab in numbers:
            made.add(tab, client)
    return made


def test_there_are_none_until_one_is_opened_and_again_when_it_is_closed() -> None:
    made = TabOwners()
    assert not made
    made.add(1, "a")
    assert made
    made.remove(1)
    assert not made


def test_a_client_may_use_its_own_tabs_and_not_those_that_another_opened() -> None:
    made = owners(a=(1,), b=(2,))
    assert made.usable("a", [1, 2]) == [1]
    assert made.usable("b", [1, 2]) == [2]
    assert made.usable("c", [1, 2]) == []


def test_a_client_with_a_tab_of_its_own_leaves_the_users_tabs_alone() -> None:
    made = owners(a=(1,))
    assert made.usable("a", [7, 1, 8]) == [1]
    assert made.usable("b", [7, 1, 8]) == [7, 8]
    assert made.usable("a", [7, 8]) == [7, 8]  # its own tab has nothing to do with the plugin


def test_a_client_that_opened_a_tab_for_a_plugin_never_falls_back_to_the_users() -> None:
    made = TabOwners()
    made.add(1, "a", ["chat"])
    assert made.usable("a", [7, 8], "chat") == []  # its own tab shows something else now
    assert made.with_purpose("a", "chat") == [1]
    assert made.usable("a", [7, 1], "chat") == [1]
    assert made.usable("a", [7, 8], "mail") == [7, 8]
    assert made.usable("b", [7, 8], "chat") == [7, 8]
    made.remove(1)
    assert made.usable("a", [7, 8], "chat") == [7, 8]


def test_a_call_may_still_use_a_tab_that_is_about_to_be_closed() -> None:
    made = TabOwners()
    made.abandon(1)  # it was opened too late for its client
    made.use(1, "chat")  # by a call that is bound to its document
    assert made.usable("a", [1], "chat") == []


def test_a_tab_is_for_the_plugins_that_calls_have_used_in_it_too() -> None:
    made = owners(a=(1,))
    made.use(1, "chat")
    assert made.usable("a", [7], "chat") == []
    made.use(7, "mail")  # the user's tab
    assert made.usable("a", [7], "mail") == [7]


def test_of_its_own_tabs_the_most_recently_opened_or_used_comes_first() -> None:
    made = owners(a=(1, 2, 3))
    assert made.usable("a", [1, 2, 3]) == [3, 2, 1]
    made.use(1, "chat")
    assert made.usable("a", [1, 2, 3]) == [1, 3, 2]
    assert made.of("a") == [1, 3, 2]


def test_using_a_tab_that_no_client_opened_does_not_make_it_owned() -> None:
    made = TabOwners()
    made.use(7, "chat")
    assert not made


def test_a_call_without_a_session_uses_no_tab_that_was_opened_unless_it_names_it() -> None:
    made = owners(a=(1,))
    made.add(2, None)
    assert made.usable(None, [1, 2, 7]) == [7]
    assert made.of(None) == []
    assert all(made.may_name(None, tab) for tab in (1, 2, 7))


def test_a_client_may_name_its_own_tabs_and_unowned_ones_but_not_anothers() -> None:
    made = owners(a=(1,))
    made.add(2, None)
    assert made.may_name("a", 1)
    assert not made.may_name("b", 1)
    assert made.may_name("b", 2)
    assert made.may_name("b", 7)


def test_only_its_opener_has_opened_a_tab() -> None:
    made = owners(a=(1,))
    made.add(2, None)
    assert made.has_opened("a", 1)
    assert not made.has_opened("b", 1)
    assert not made.has_opened(None, 1)
    assert made.has_opened(None, 2)
    assert not made.has_opened(None, 7)


def test_no_call_uses_or_names_a_tab_that_is_about_to_be_closed() -> None:
    made = owners(a=(1, 2))
    made.abandon(1)
    for client in ("a", "b", None):
        assert not made.may_name(client, 1)
        assert not made.has_opened(client, 1)
        assert 1 not in made.usable(client, [1])
    assert made.of("a") == [2]
    assert made.every() == [1, 2]
    made.remove(1)
    assert made.may_name("b", 1)


def test_tabs_that_were_opened_without_a_session_end_with_none() -> None:
    made = owners(a=(1, 2))
    made.add(3, None)
    made.abandon(2)
    assert made.of_sessions() == [1]
    assert made.every() == [1, 2, 3]


def test_a_browser_that_reconnects_gets_the_tabs_to_close_and_forgets_those_that_are_gone() -> None:
    made = owners(a=(1, 2, 3, 11, 12))
    made.abandon(2)
    made.abandon(3)
    made.abandon(12)
    assert made.reconnected(range(10), {1, 2}) == [2]
    assert made.every() == [1, 2, 11, 12]
    assert made.of("a") == [11, 1]


def test_a_tab_that_was_reported_open_and_is_not_any_more_is_forgotten() -> None:
    made = owners(a=(1, 2))
    made.reported(range(10), {1, 2, 7})
    made.reported(range(10), {2, 7})
    assert made.every() == [2]
    made.reported(range(10), {7})
    assert not made


def test_a_report_from_before_a_tab_was_opened_does_not_forget_it() -> None:
    made = owners(a=(1,))
    made.reported(range(10), {7})
    assert made.every() == [1]


def test_a_report_of_one_browser_forgets_no_tab_of_another() -> None:
    made = owners(a=(1, 11))
    made.reported(range(10), {1})
    made.reported(range(10, 20), {11})
    made.reported(range(10), {1})
    assert made.every() == [1, 11]
    made.reported(range(10), ())
    assert made.every() == [11]


def test_a_tab_with_the_number_of_a_forgotten_one_is_another() -> None:
    made = owners(a=(1,))
    made.reported(range(10), {1})
    made.remove(1)
    made.add(1, "b")
    made.reported(range(10), ())
    assert made.every() == [1]
