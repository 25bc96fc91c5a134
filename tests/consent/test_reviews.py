"""What the user has approved is remembered, and a changed build is not what they approved."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opentabs_py.consent.reviews import Reviews, find_standing
from opentabs_py.errors import ReviewError


def test_a_build_counts_as_reviewed_from_its_approval_until_it_changes(tmp_path: Path) -> None:
    reviews = Reviews(tmp_path / "new" / "reviews")
    assert find_standing(reviews.approvals(), "chat", "d1") == "unreviewed"
    reviews.approve("chat", "1.0", "d1", {"adapter.iife.js": b"one"})
    assert find_standing(reviews.approvals(), "chat", "d1") == "reviewed"
    assert find_standing(reviews.approvals(), "chat", "d2") == "changed"
    assert find_standing(reviews.approvals(), "mail", "d1") == "unreviewed"


def test_what_was_approved_is_kept_for_the_next_review(tmp_path: Path) -> None:
    reviews = Reviews(tmp_path / "reviews")
    reviews.approve("chat", "1.0", "d1", {"adapter.iife.js": b"one", "pre-script.js": b"early"})
    reviews.approve("chat", "1.1", "d2", {"adapter.iife.js": b"two"})
    assert reviews.approved_files("chat") == {"adapter.iife.js": b"two"}
    assert reviews.approvals()["chat"].version == "1.1"
    assert reviews.approved_files("mail") == {}


def test_a_withdrawn_approval_leaves_nothing(tmp_path: Path) -> None:
    reviews = Reviews(tmp_path / "reviews")
    reviews.approve("chat", "1.0", "d1", {"adapter.iife.js": b"one"})
    assert reviews.revoke("chat")
    assert not reviews.revoke("chat")
    assert reviews.approvals() == {}
    assert not (tmp_path / "reviews" / "chat").exists()


def test_a_withdrawal_that_leaves_files_behind_says_so(tmp_path: Path) -> None:
    reviews = Reviews(tmp_path / "reviews")
    reviews.approve("chat", "1.0", "d1", {"adapter.iife.js": b"one"})
    (tmp_path / "reviews" / "chat" / "folder").mkdir()
    with pytest.raises(ReviewError, match="Cannot record the review"):
        reviews.revoke("chat")
    assert reviews.approvals() == {}


def test_a_damaged_list_approves_nothing_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reviews = Reviews(tmp_path)
    reviews.file.write_text('{"chat": {"digest": 1}}')
    assert reviews.approvals() == {}
    assert "No plugin counts as reviewed" in caplog.text
    assert "it is damaged" in caplog.text


def test_only_the_user_can_read_or_change_reviews(tmp_path: Path) -> None:
    reviews = Reviews(tmp_path / "reviews")
    reviews.approve("chat", "1.0", "d1", {"adapter.iife.js": b"one"})
    kept = tmp_path / "reviews" / "chat"
    for path in (reviews.file, kept / "adapter.iife.js"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for directory in (tmp_path / "reviews", kept):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_review_that_cannot_be_recorded_says_why(tmp_path: Path) -> None:
    (tmp_path / "reviews").write_text("a file")
    with pytest.raises(ReviewError, match="Cannot record the review"):
        Reviews(tmp_path / "reviews").approve("chat", "1.0", "d1", {})


def test_reviews_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    reviews = Reviews(tmp_path / "reviews")
    plugins = [f"plugin-{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as threads:
        [*threads.map(lambda name: reviews.approve(name, "1.0.0", "d", {}), plugins)]
    assert sorted(reviews.approvals()) == sorted(plugins)
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(reviews.revoke, plugins))
    assert reviews.approvals() == {}
