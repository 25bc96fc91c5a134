"""What readers of changing items receive."""

from opentabs_py.core.console.shelf import Delta, Shelf


def test_a_reader_gets_what_has_changed_since_its_version_in_order() -> None:
    shelf: Shelf[str] = Shelf(10)
    for version, key in enumerate("abc", start=1):
        shelf.put(key, f"{key}1", version)
    shelf.put("a", "a2", 4)
    assert shelf.since(2) == Delta(False, ("c1", "a2"), ())
    assert not shelf.since(4)
    assert shelf.get("a") == "a2"
    assert shelf.get("x") is None


def test_a_new_reader_gets_everything_and_forgets_what_it_had() -> None:
    shelf: Shelf[str] = Shelf(10)
    shelf.put("a", "a", 1)
    shelf.remove("a", 2)
    shelf.put("b", "b", 3)
    assert shelf.since(0) == Delta(True, ("b",), ())


def test_a_removed_item_is_reported_once_it_was_there() -> None:
    shelf: Shelf[str] = Shelf(10)
    shelf.put("a", "a", 1)
    shelf.remove("x", 2)
    shelf.remove("a", 3)
    assert shelf.since(1) == Delta(False, (), ("a",))
    assert not shelf.since(3)


def test_an_item_that_has_come_back_is_not_gone() -> None:
    shelf: Shelf[str] = Shelf(10)
    shelf.put("a", "a", 1)
    shelf.remove("a", 2)
    shelf.put("a", "again", 3)
    assert shelf.since(1) == Delta(False, ("again",), ())


def test_the_item_that_has_not_changed_for_longest_makes_room() -> None:
    shelf: Shelf[str] = Shelf(2)
    shelf.put("a", "a", 1)
    shelf.put("b", "b", 2)
    shelf.put("a", "a2", 3)
    shelf.put("c", "c", 4)
    assert len(shelf) == 2
    assert shelf.since(3) == Delta(False, ("c",), ("b",))


def test_a_reader_that_missed_forgotten_removals_starts_over() -> None:
    shelf: Shelf[str] = Shelf(10, remembered=1)
    for version, key in enumerate("abc", start=1):
        shelf.put(key, key, version)
    shelf.remove("a", 4)
    assert shelf.since(3) == Delta(False, (), ("a",))
    shelf.remove("b", 5)
    assert shelf.since(3) == Delta(True, ("c",), ())
    assert shelf.since(4) == Delta(False, (), ("b",))


def test_equal_items_have_not_changed_when_all_are_replaced() -> None:
    shelf: Shelf[str] = Shelf(10)
    assert shelf.replace({"a": "a", "b": "b"}, 1)
    assert not shelf.replace({"a": "a", "b": "b"}, 2)
    assert shelf.replace({"b": "b", "c": "c"}, 3)
    assert shelf.since(1) == Delta(False, ("c",), ("a",))
    assert shelf.replace({"b": "b2", "c": "c"}, 4)
    assert shelf.since(3) == Delta(False, ("b2",), ())


def test_an_amended_item_looks_the_same_to_readers() -> None:
    shelf: Shelf[str] = Shelf(10)
    shelf.put("a", "a", 1)
    shelf.put("b", "b", 2)
    shelf.amend("a", "less")
    assert not shelf.since(2)
    assert shelf.get("a") == "less"
    assert shelf.since(0).changed == ("less", "b")
