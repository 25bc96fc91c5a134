"""Choose the tests to run: those that were requested, and those that run again after a change."""

from collections.abc import Iterable, Mapping, Sequence

Chosen = tuple[str, ...] | None
"""Tests, by their ids or the paths of their files as these are in ids; None means all."""


def is_chosen(test: str, chosen: Chosen) -> bool:
    """Return whether a test is among those that run."""
    return chosen is None or test in chosen or test.partition("::")[0] in chosen


def after_change(files: Iterable[str], known: Mapping[str, str], last: Chosen) -> Chosen:
    """Return what runs again after a change.

    That is what ran last. If it was everything, and only files with tests have changed, only those.

    Args:
        files: The changed files, as absolute paths.
        known: The files that contain tests, by absolute path, as they are in ids.
        last: What ran last.
    """
    if last is not None:
        return last
    changed = [known.get(file) for file in files]
    found: Sequence[str] = [each for each in changed if each is not None]
    return tuple(dict.fromkeys(found)) if found and len(found) == len(changed) else None
