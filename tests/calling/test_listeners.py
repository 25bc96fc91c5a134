"""Functions that are called at each change."""

import pytest

from opentabs_py.calling.listeners import Listeners


def test_every_listener_is_called_until_it_unsubscribes() -> None:
    listeners: Listeners[[int]] = Listeners("numbers")
    first, second = list[int](), list[int]()
    listeners.subscribe(first.append)
    leave = listeners.subscribe(second.append)
    listeners.notify(1)
    leave()
    leave()  # a second time does no harm
    listeners.notify(2)
    assert (first, second, len(listeners)) == ([1, 2], [1], 1)


def test_the_same_function_may_listen_twice_and_leave_once() -> None:
    listeners: Listeners[[int]] = Listeners("numbers")
    heard = list[int]()
    leave = listeners.subscribe(heard.append)
    listeners.subscribe(heard.append)
    listeners.notify(1)
    leave()
    listeners.notify(2)
    assert heard == [1, 1, 2]


def test_a_listener_that_fails_is_logged_and_the_others_are_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listeners: Listeners[[int]] = Listeners("numbers")
    heard = list[int]()

    def fail(_number: int) -> None:
        raise RuntimeError("no")

    listeners.subscribe(fail)
    listeners.subscribe(heard.append)
    listeners.notify(1)
    assert heard == [1]
    assert "A listener to numbers failed" in caplog.text


def test_a_listener_that_leaves_meanwhile_does_not_disturb_the_others() -> None:
    listeners: Listeners[[]] = Listeners("changes")
    heard = list[str]()

    def once() -> None:
        heard.append("first")
        leave()

    leave = listeners.subscribe(once)
    listeners.subscribe(lambda: heard.append("second"))
    listeners.notify()
    listeners.notify()
    assert heard == ["first", "second", "second"]
