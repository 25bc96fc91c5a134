"""Group requests by operation of a site's API."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from opentabs_py.core.shapes.texts import is_id
from opentabs_py.generate.flows import Flows
from opentabs_py.generate.samples import Sample, Style

_FIXED: Final = re.compile(
    r"v\d+(\.\d+)*|\d{4}-\d\d(-\d\d)?|api|apis|rest|graphql|rpc|ajax|json|ap|web|public|internal",
    re.IGNORECASE,
)
_NOISE: Final = re.compile(
    r"(^|[/._-])(analytics|beacons?|collect|telemetry|metrics|tracking|track|pixel|heartbeat|ping"
    r"|rum|sentry|logs?|stats|gtm|csp-report)([/._-]|$)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Operation:
    """What a site offers under one name.

    Attributes:
        style: What kind of API it belongs to.
        method: Of HTTP, in capital letters.
        origin: Empty if it is that of the page.
        path: The segments of the path; None for one that is an argument.
        name: Of the GraphQL operation or of JSON-RPC's method; else empty.
        samples: The calls of it, in their order.
    """

    style: Style
    method: str
    origin: str
    path: Sequence[str | None]
    name: str = ""
    samples: list[Sample] = field(default_factory=list[Sample])

    def __str__(self) -> str:
        path = "/".join("{id}" if each is None else each for each in self.path)
        name = f" {self.name}" if self.name else ""
        return f"{self.method} {self.origin}/{path}{name}"

    @property
    def works(self) -> Sequence[Sample]:
        """The calls that succeeded."""
        return [each for each in self.samples if each.works]

    @property
    def answered(self) -> Sequence[Sample]:
        """The calls that succeeded and were answered with JSON."""
        return [each for each in self.works if each.value]

    @property
    def can_be_sent(self) -> bool:
        """Whether a tool could send what its requests send."""
        return not any(each.has_other_body for each in self.samples)

    @property
    def is_noise(self) -> bool:
        """Whether it only reports to the site what its visitors do."""
        path = "/".join(each or "" for each in self.path)
        return self.method != "GET" and _NOISE.search(path) is not None

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return all(each.is_read for each in self.samples)


def operations_of(samples: Sequence[Sample], flows: Flows) -> Sequence[Operation]:
    """Return the operations that were called, in the order of their first calls.

    Args:
        samples: The requests.
        flows: Where ids come from; what does is an argument of the path.
    """
    found: dict[object, Operation] = {}
    for sample in samples:
        path = _template(sample, flows)
        key = (sample.style, sample.request.method, sample.origin, sample.operation, tuple(path))
        operation = found.get(key)
        if operation is None:
            operation = found[key] = Operation(
                sample.style, sample.request.method, sample.origin, path, sample.operation
            )
        operation.samples.append(sample)
    return _joined([*found.values()])


def _joined(operations: Sequence[Operation]) -> Sequence[Operation]:
    """Add requests that failed, such as one for an unknown id, to their operation."""
    kept: list[Operation] = []
    for operation in operations:
        alike = (each for each in operations if _is_alike(each, operation))
        home = None if operation.works else next(alike, None)
        if home is None:
            kept.append(operation)
        else:
            home.samples += operation.samples
    return kept


def _is_alike(one: Operation, other: Operation) -> bool:
    return (
        bool(one.works)
        and (one.style, one.method, one.origin) == (other.style, other.method, other.origin)
        and one.name == other.name
        and len(one.path) == len(other.path)
        and all(known in (None, given) for known, given in zip(one.path, other.path, strict=True))
    )


def _template(sample: Sample, flows: Flows) -> Sequence[str | None]:
    if sample.style in ("graphql", "rpc"):
        return sample.path
    return [
        None if _is_argument(segment, index, sample, flows) else segment
        for index, segment in enumerate(sample.path)
    ]


def _is_argument(segment: str, index: int, sample: Sample, flows: Flows) -> bool:
    if not segment or _FIXED.fullmatch(segment):
        return False
    if is_id(segment):
        return True
    return index > 0 and flows.source(segment, other_than=sample) is not None
