"""Items that change, for readers that each know an earlier version of them."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

REMEMBERED: Final = 10_000  # removed keys; a reader that missed more starts over

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Delta(Generic[T]):
    """What a reader has to do to get from its version to the current one.

    Attributes:
        reset: Forget everything first.
        changed: Items that are new or have changed, in the order in which they did.
        gone: The keys of items to remove.
    """

    reset: bool
    changed: tuple[T, ...]
    gone: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.reset or bool(self.changed) or bool(self.gone)

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON, if the items are."""
        return {"reset": self.reset, "changed": [*self.changed], "gone": [*self.gone]}


class Shelf(Generic[T]):
    """Items by key, each with the version at which it last changed.

    Args:
        most: How many items are kept; the ones that have not changed for longest are removed.
        remembered: How many removed keys are remembered.
    """

    def __init__(self, most: int, *, remembered: int = REMEMBERED) -> None:
        self._most = most
        # In the order of their versions, so that the newest changes are at the end.
        self._items: dict[str, tuple[int, T]] = {}
        self._gone: deque[tuple[int, str]] = deque()
        self._remembered = remembered
        self._forgotten = 0  # the version of the last removal that is not remembered

    def __len__(self) -> int:
        """Return how many items there are."""
        return len(self._items)

    def get(self, key: str) -> T | None:
        """Return an item; None if there is none with that key."""
        found = self._items.get(key)
        return None if found is None else found[1]

    def put(self, key: str, item: T, version: int) -> None:
        """Add an item, or change it.

        Args:
            key: The item's key.
            item: The item.
            version: Higher than in any call before.
        """
        self._items.pop(key, None)
        self._items[key] = version, item
        if len(self._items) > self._most:
            self.remove(next(iter(self._items)), version)

    def amend(self, key: str, item: T) -> None:
        """Replace an item by one that looks the same to readers."""
        version, _ = self._items[key]
        self._items[key] = version, item

    def remove(self, key: str, version: int) -> None:
        """Remove an item, if it is there."""
        if self._items.pop(key, None) is None:
            return
        self._gone.append((version, key))
        if len(self._gone) > self._remembered:
            self._forgotten, _ = self._gone.popleft()

    def replace(self, items: Mapping[str, T], version: int) -> bool:
        """Replace all items; those that are equal have not changed.

        Returns:
            Whether anything has changed.
        """
        changed = {key: item for key, item in items.items() if self.get(key) != item}
        gone = [key for key in self._items if key not in items]
        for key in gone:
            self.remove(key, version)
        for key, item in changed.items():
            self.put(key, item, version)
        return bool(changed or gone)

    def since(self, version: int) -> Delta[T]:
        """Return what has changed after a version; 0 for a reader that knows nothing."""
        reset = version < self._forgotten or version == 0
        after = 0 if reset else version
        changed: list[T] = []
        for changed_at, item in reversed(self._items.values()):
            if changed_at <= after:
                break
            changed.append(item)
        gone: list[str] = []
        for removed_at, key in reversed(self._gone):
            if removed_at <= after or reset:
                break
            if key not in self._items:  # a key may come back
                gone.append(key)
        return Delta(reset, tuple(reversed(changed)), tuple(gone))
