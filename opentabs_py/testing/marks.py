"""`@pytest.mark.opentabs(...)`: options for one test."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, Literal, get_args

from opentabs_py.config.names import is_name

RunsOn = Literal["real", "manual"]
ReplayTiming = Literal["instant", "recorded"]


@dataclass(frozen=True, slots=True)
class Marks:
    """The combined options of a test's marks.

    Attributes:
        idle: Seconds of silence that end a call.
        ceiling: Maximum seconds for a call.
        clock: What drives the server's timers: real time, or the test.
        fresh_profile: Whether the test gets its own browser.
        allow_breaches: Whether the test passes even if a tool breaks its contract.
        faults_seed: The seed for random faults.
        signed_in: The saved sign-in that the test begins with; see `opentabs login`. With
            several browsers, that of all, or of each by the browser's name.
        browsers: The names of the test's browsers, if there are several.
        recording: The recording that answers for the site, relative to the test's file.
        replay_timing: Whether its WebSockets and event streams take as long as they did.
    """

    idle: float | None = None
    ceiling: float | None = None
    clock: RunsOn | None = None
    fresh_profile: bool = False
    allow_breaches: bool = False
    faults_seed: int = 0
    signed_in: str | Mapping[str, str] | None = None
    browsers: Sequence[str] = ()
    recording: str | PathLike[str] | None = None
    replay_timing: ReplayTiming = "instant"

    def sign_in_of(self, browser: str) -> str | None:
        """Return the saved sign-in that a browser begins with, if any."""
        if self.signed_in is None or isinstance(self.signed_in, str):
            return self.signed_in
        return self.signed_in.get(browser)


KNOWN = tuple(field.name for field in fields(Marks))


def read_marks(marks: Iterable[tuple[tuple[Any, ...], Mapping[str, Any]]]) -> Marks:
    """Combine marks, each given as (args, kwargs), closest first; the closest one wins.

    Raises:
        ValueError: A mark has an argument that is not valid; the text lists the valid ones.
    """
    combined: dict[str, Any] = {}
    for args, kwargs in marks:
        unknown = [name for name in kwargs if name not in KNOWN]
        if args or unknown:
            what = f"{unknown[0]}=" if unknown else repr(args[0])
            raise ValueError(
                f"pytest.mark.opentabs does not accept {what}; use one of {', '.join(KNOWN)}"
            )
        combined = {**kwargs, **combined}
    for name in ("idle", "ceiling"):
        value = combined.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and value > 0):
            raise ValueError(
                f"pytest.mark.opentabs({name}=...) must be a number of seconds, not {value!r}"
            )
    seed = combined.get("faults_seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ValueError(f"pytest.mark.opentabs(faults_seed=...) must be an integer, not {seed!r}")  # noqa: TRY004
    if "browsers" in combined:
        _check_browsers(combined["browsers"])
    _check_sign_in(combined.get("signed_in"), combined.get("browsers", ()))
    recording = combined.get("recording")
    if recording is not None and not (isinstance(recording, str | PathLike) and recording):
        raise ValueError(
            f"pytest.mark.opentabs(recording=...) must be the path of a file, not {recording!r}"
        )
    for name, values in (("clock", get_args(RunsOn)), ("replay_timing", get_args(ReplayTiming))):
        if combined.get(name) not in (None, *values):
            raise ValueError(
                f"pytest.mark.opentabs({name}=...) must be {' or '.join(map(repr, values))}, "
                f"not {combined[name]!r}"
            )
    return Marks(**combined)


def _check_browsers(browsers: Any) -> None:
    is_list = isinstance(browsers, list | tuple)
    names: list[Any] = [*browsers] if is_list else []
    are_names = all(isinstance(name, str) and is_name(name) for name in names)
    if not is_list or not are_names or len({*names}) < len(names):
        raise ValueError(
            "pytest.mark.opentabs(browsers=...) must be a list of different names, such as "
            f'["ann", "ben"], not {browsers!r}'
        )
    if not names:
        raise ValueError(
            "pytest.mark.opentabs(browsers=...) must name at least one browser; for a single one, "
            "leave it out"
        )


def _check_sign_in(signed_in: Any, browsers: Sequence[str]) -> None:
    if isinstance(signed_in, str | None) or _are_sign_ins(signed_in, browsers):
        return
    expected = f"be a name, or one for each of {[*browsers]}" if browsers else "be a name"
    raise ValueError(f"pytest.mark.opentabs(signed_in=...) must {expected}, not {signed_in!r}")


def _are_sign_ins(given: Any, browsers: Sequence[str]) -> bool:
    if not isinstance(given, Mapping):
        return False
    sign_ins: dict[Any, Any] = {**given}
    return all(name in browsers and isinstance(each, str) for name, each in sign_ins.items())
