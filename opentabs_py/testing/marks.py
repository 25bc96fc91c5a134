"""`@pytest.mark.opentabs(...)`: what one test wants otherwise."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Clock = Literal["real", "manual"]


@dataclass(frozen=True, slots=True)
class Marks:
    """What the marks of a test say together.

    Attributes:
        idle: Seconds of silence that end a call.
        ceiling: Seconds that a call may take.
        clock: Who moves the server's timers: time itself, or the test.
        fresh_profile: A browser of its own.
        allow_breaches: What a tool does against its contract does not fail the test.
        faults_seed: Of what `opentabs.faults` leaves to chance.
    """

    idle: float | None = None
    ceiling: float | None = None
    clock: Clock | None = None
    fresh_profile: bool = False
    allow_breaches: bool = False
    faults_seed: int = 0


KNOWN = tuple(field.name for field in fields(Marks))


def read_marks(marks: Iterable[tuple[tuple[Any, ...], Mapping[str, Any]]]) -> Marks:
    """Join marks, each its arguments and its keywords, the closest first: it wins.

    Raises:
        ValueError: One says what no mark can say; the text lists what it can.
    """
    said: dict[str, Any] = {}
    for args, kwargs in marks:
        unknown = [name for name in kwargs if name not in KNOWN]
        if args or unknown:
            what = f"{unknown[0]}=" if unknown else repr(args[0])
            raise ValueError(f"pytest.mark.opentabs takes no {what}; it takes {', '.join(KNOWN)}")
        said = {**kwargs, **said}
    for name in ("idle", "ceiling"):
        value = said.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and value > 0):
            raise ValueError(f"pytest.mark.opentabs({name}=...) takes seconds, not {value!r}")
    seed = said.get("faults_seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ValueError(f"pytest.mark.opentabs(faults_seed=...) takes an integer, not {seed!r}")  # noqa: TRY004
    if said.get("clock") not in (None, *get_args(Clock)):
        raise ValueError(
            f"pytest.mark.opentabs(clock=...) takes {' or '.join(map(repr, get_args(Clock)))}, "
            f"not {said['clock']!r}"
        )
    return Marks(**said)
