"""Find the responses that the ids in requests come from."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from opentabs_py.core.shapes.change import below
from opentabs_py.generate.samples import Sample

NAMES_THINGS: Final = re.compile(
    r"(?:.*[a-z_-])?(?:id|key|slug|uuid|guid|handle|login|username|ref|sha|hash|code|name|number"
    r"|cursor|token|tag)|(?:.*[a-z])?(?:Id|ID|Key|Slug|Uuid|Handle|Login|Name|Number|Cursor|Code)",
)
_MOST: Final = 50_000  # values; more would only cost time


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Where a value comes from.

    Attributes:
        sample: The request whose response has it.
        path: Where in the response, such as `channels[].id`.
        name: The member's name.
        value: The value, with its type.
    """

    sample: Sample
    path: str
    name: str
    value: str | int


class Flows:
    """The ids in all responses of a recording.

    Args:
        samples: The requests.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._found: dict[str, list[ValueSource]] = {}
        left = _MOST
        for sample in samples:
            for response in sample.value:
                for path, name, value in _ids(response):
                    if left > 0:
                        left -= 1
                        source = ValueSource(sample, path, name, value)
                        self._found.setdefault(str(value), []).append(source)

    def source(self, value: str, *, other_than: Sample | None = None) -> ValueSource | None:
        """Return the first response that has a value as an id; None if there is none.

        Args:
            value: The value.
            other_than: The request that sends it, whose own response may well repeat it.
        """
        for source in self._found.get(value, ()):
            if other_than is None or _asked(source.sample) != _asked(other_than):
                return source
        return None


def _asked(sample: Sample) -> tuple[Sequence[str], str]:
    return sample.path, sample.operation


def _ids(response: Any) -> Iterator[tuple[str, str, str | int]]:
    """Yield the path, the name and the value of each id in a response."""
    pending: list[tuple[str, str, Any]] = [("", "", response)]
    while pending:
        path, name, value = pending.pop()
        if isinstance(value, dict):
            members = cast("Mapping[str, Any]", value)
            pending += [(below(path, each), each, inner) for each, inner in members.items()]
        elif isinstance(value, list):
            items = cast("Sequence[Any]", value)
            pending += [(f"{path}[]", name, inner) for inner in items]
        elif (
            not isinstance(value, bool)
            and isinstance(value, str | int)
            and str(value)
            and NAMES_THINGS.fullmatch(name)
        ):
            yield path, name, value
