"""Placing the editors that a snapshot leaves out; e2e/hands/test_snapshots.py finds them."""

import pytest

from opentabs_py.hands.editors import EmptyEditor, Side, insert
from opentabs_py.hands.tree import Node


@pytest.mark.parametrize(
    ("side", "wanted"),
    [
        ("in", ["main", "e01", "e02", "heading", "list"]),
        ("before", ["main", "e01", "e02", "heading", "list"]),
        ("after", ["main", "heading", "e01", "e02", "list"]),
    ],
)
def test_several_editors_at_one_place_keep_their_order(side: Side, wanted: list[str]) -> None:
    heading = Node("heading", attributes={"ref": "e2"})
    main = Node("main", attributes={"ref": "e1"}, children=[heading, Node("list")])
    near = "e1" if side == "in" else "e2"

    (top,) = insert([main], [EmptyEditor(ref, near, side) for ref in ("e01", "e02")])

    assert [each.ref if each.role == "textbox" else each.role for each in top.walk()] == wanted


def test_editors_near_nothing_come_last_in_their_order() -> None:
    gone = [EmptyEditor("e01", "", "in"), EmptyEditor("e02", "e9", "after")]
    assert [each.ref for each in insert([Node("main")], gone)] == ["", "e01", "e02"]
