"""What makes a browser unusable for other tests."""

from collections.abc import Callable
from unittest.mock import MagicMock

import pytest

from opentabs_py.testing.isolation import Isolation


@pytest.mark.parametrize(
    ("act", "is_dirty"),
    [
        (lambda context: context.set_offline(True), True),
        (lambda context: context.clock.install(), True),
        (lambda context: context.credentials.install(), True),
        (lambda context: context.credentials.create("example.com"), True),
        (lambda context: context.credentials.get(), False),
        (lambda context: context.new_page(), False),
    ],
)
def test_what_cannot_be_undone_makes_it_dirty(
    act: Callable[[MagicMock], object], is_dirty: bool
) -> None:
    context = MagicMock(pages=[])
    isolation = Isolation(context, permissions=(), keeps_storage=False, is_watched=False)

    act(context)

    assert isolation.is_dirty == is_dirty
