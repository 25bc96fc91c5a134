"""Which plugins need a review before their tools run."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from opentabs_py.config.settings import load_settings
from opentabs_py.consent.reviews import Reviews
from opentabs_py.plugins.build_content import content_digest
from opentabs_py.plugins.load import load_plugin
from opentabs_py.session.plugins.standings import find_standings, why_off
from tests.session.built import build

WriteSettings = Callable[[str], object]


def standing(chat: Path, reviews: Reviews, *named: Path) -> str:
    found = find_standings([load_plugin(chat)], load_settings(), reviews, named=named)
    return found["chat"]


@pytest.mark.parametrize(
    ("listed", "exempt", "expected"),
    [
        ([], [], "named"),
        (["chat"], [], "unreviewed"),
        (["chat"], ["chat"], "reviewed"),
        (["chat"], ["."], "reviewed"),
        (["chat"], ["ch"], "unreviewed"),
    ],
)
def test_a_plugin_of_the_settings_file_needs_a_review_unless_the_file_exempts_it(
    tmp_path: Path,
    write_settings: WriteSettings,
    listed: list[str],
    exempt: list[str],
    expected: str,
) -> None:
    chat = build(tmp_path / "chat")
    lines = {"plugins": listed, "no_review": exempt}
    write_settings(
        "\n".join(
            f"{key} = {json.dumps([str(tmp_path / name) for name in names])}"
            for key, names in lines.items()
        )
    )
    assert standing(chat, Reviews(tmp_path / "reviews")) == expected


def test_a_plugin_that_a_program_names_needs_no_review(
    tmp_path: Path, write_settings: WriteSettings
) -> None:
    chat = build(tmp_path / "chat")
    write_settings(f"plugins = [{json.dumps(str(chat))}]")
    reviews = Reviews(tmp_path / "reviews")
    assert standing(chat, reviews, tmp_path / "other") == "unreviewed"
    assert standing(chat, reviews, tmp_path / "other" / ".." / "chat") == "named"


def test_a_review_counts_for_the_build_that_was_reviewed(
    tmp_path: Path, write_settings: WriteSettings
) -> None:
    chat = build(tmp_path / "chat")
    write_settings(f"plugins = [{json.dumps(str(chat))}]")
    reviews = Reviews(tmp_path / "reviews")
    reviews.approve("chat", "1.0", content_digest(load_plugin(chat)), {})
    assert standing(chat, reviews) == "reviewed"
    build(chat, script=b"/* another */")
    assert standing(chat, reviews) == "changed"


def test_only_tools_of_a_plugin_that_needs_a_review_are_off_and_why_says_how_to_review_it() -> None:
    said = "The plugin chat has changed since it was reviewed, so its tools are off."
    assert why_off("chat", "changed") == f"{said} Run: opentabs review chat"
    assert why_off("chat", "reviewed") is None
