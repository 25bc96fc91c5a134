"""The results of repeating recorded calls."""

from collections.abc import Sequence
from dataclasses import dataclass

from opentabs_py.core.recording.exchange import RecordedCall, Recording


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """How a recorded call ended this time.

    Attributes:
        call: With the value, or the error, or both if the value does not match the output schema.
            None if it was not made.
        category: That of the error, such as `auth`.
        skipped: Why it was skipped on purpose, in a sentence.
        barred: Why it could not be made, for a reason other than the site, in a sentence.
        unready: The plugin that did not get ready on the page, or the tool that the page did not
            register.
    """

    call: RecordedCall | None = None
    category: str | None = None
    skipped: str = ""
    barred: str = ""
    unready: str = ""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """One recording's calls, made again at the live site.

    Attributes:
        traffic: What passed between the page and the site, and the calls that were made.
        outcomes: What became of each recorded call, in the order of the recording.
        is_anonymous: Whether the browser began without a sign-in.
        failure: Why the page could not be opened; empty if it could.
    """

    traffic: Recording
    outcomes: Sequence[StepOutcome] = ()
    is_anonymous: bool = True
    failure: str = ""
