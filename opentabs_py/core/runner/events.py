"""The events of pytest for the process that started it, one JSON document per line, and replies.

pytest runs in a process of its own; the test kit's part in it sends events, the runner reads them.
"""

import json
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from opentabs_py.core.text import cut_middle, shorten, well_formed
from opentabs_py.core.trace.record import CallRecord

LONGEST_TEXT: Final = 200_000  # characters of an error, or of what a test printed
LONGEST_WHY: Final = 300

# Cut in every event, because a line that is too long is lost with all that it says.
_Text = Annotated[str, AfterValidator(lambda text: cut_middle(text, LONGEST_TEXT))]
_Why = Annotated[str, AfterValidator(lambda why: shorten(why, LONGEST_WHY))]


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


# --- what pytest receives ---


class Plan(_Message):
    """What a run of pytest is for.

    Attributes:
        socket: The file descriptor to send events to.
        screenshots: The directory for screenshots.
        chosen: The tests to run, as their ids or the paths of their files; None means all.
        pauses: Whether the browser is kept open at a failure.
    """

    socket: int
    screenshots: str
    chosen: tuple[str, ...] | None = None
    pauses: bool = True


class Resume(_Message):
    """End a pause at a failure.

    Attributes:
        pause: Its number.
    """

    do: Literal["resume"] = "resume"
    pause: int


class SetPauseOnFailure(_Message):
    """Stay at failures from now on, or do not."""

    do: Literal["set_pauses"] = "set_pauses"
    pauses: bool


Command = Resume | SetPauseOnFailure

# --- what it says ---


class Known(_Message):
    """A test that was collected.

    Attributes:
        id: pytest's node id.
        file: Its file, relative to pytest's root.
        path: Its file, absolute.
        name: The rest of its id.
        line: Where it begins, from 1.
    """

    id: str
    file: str
    path: str
    name: str
    line: int


class Collected(_Message):
    """All tests that run, and those that could have been chosen."""

    event: Literal["collected"] = "collected"
    tests: tuple[Known, ...]


class NotCollected(_Message):
    """A file whose tests could not be collected; comes before `Collected`."""

    event: Literal["not_collected"] = "not_collected"
    file: str
    path: str
    text: _Text


class Started(_Message):
    """A test has started."""

    event: Literal["started"] = "started"
    test: str


class CallSeen(_Message):
    """A call has started, or has ended.

    Attributes:
        browser: The name of the browser, in a test with several.
        record: Its record; so far, if it runs.
    """

    event: Literal["call"] = "call"
    test: str
    browser: str = ""
    running: bool
    record: CallRecord


class ScreenshotTaken(_Message):
    """A page was photographed.

    Attributes:
        calls: The ids of the calls that it belongs to.
        file: Its name in the directory for screenshots.
    """

    event: Literal["screenshot_taken"] = "screenshot_taken"
    test: str
    browser: str = ""
    when: Literal["before", "after", "failure"]
    calls: tuple[str, ...] = ()
    file: str


class FaultsSeen(_Message):
    """What a test has done to messages and to its browser, so far.

    Attributes:
        rules: The faults in messages, each with the messages it hit.
        done: The actions on the browser.
        log: All of it, for `opentabs.faults.replay`; empty if there is nothing to repeat.
    """

    event: Literal["faults"] = "faults"
    test: str
    browser: str = ""
    seed: int
    rules: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    log: str = ""


class Unanswered(_Message):
    """Requests that a test's recording did not answer.

    Attributes:
        recording: The name of its file.
        requests: Each with what is nearest in the recording, as text, and how often it was made.
        more: How many others there were.
    """

    event: Literal["unanswered"] = "unanswered"
    test: str
    browser: str = ""
    recording: str
    requests: tuple[tuple[str, int], ...]
    more: int = 0


class Phase(_Message):
    """A phase of a test has ended.

    Attributes:
        outcome: pytest's: `passed`, `failed`, `skipped`, or that of a pytest plugin.
        expected: Whether the test is expected to fail.
        why: Its error in one line.
        text: Its error in full.
        sections: What the test printed and logged, and the kit's report, each with its title.
    """

    event: Literal["phase"] = "phase"
    test: str
    when: Literal["setup", "call", "teardown"]
    outcome: str
    expected: bool = False
    seconds: float
    why: _Why = ""
    text: _Text = ""
    sections: tuple[tuple[str, _Text], ...] = ()


class Retried(_Message):
    """A test has failed, and runs again."""

    event: Literal["retried"] = "retried"
    test: str


class Paused(_Message):
    """A test has failed, and its browser is kept open.

    Attributes:
        pause: Counts the pauses of a run, from 1.
    """

    event: Literal["paused"] = "paused"
    test: str
    pause: int


class Resumed(_Message):
    """The pause has ended."""

    event: Literal["resumed"] = "resumed"
    test: str


class Ended(_Message):
    """A test has ended.

    Attributes:
        traces: Playwright's traces of it, as files.
        files: What else was kept of it: videos, screenshots, traces of its calls.
    """

    event: Literal["ended"] = "ended"
    test: str
    traces: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class BrowserStarted(_Message):
    """The browser that the tests run in.

    Attributes:
        version: Chromium's.
    """

    event: Literal["browser_started"] = "browser_started"
    version: str


class Lost(_Message):
    """Events did not arrive, because the reader was too slow or one was too long."""

    event: Literal["lost"] = "lost"
    count: int


TestEvent = (
    Started
    | CallSeen
    | ScreenshotTaken
    | FaultsSeen
    | Unanswered
    | Phase
    | Retried
    | Paused
    | Resumed
    | Ended
)
"""What happened to one test."""

Event = Collected | NotCollected | TestEvent | BrowserStarted | Lost

_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])
_COMMAND: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="do")])


def to_line(message: Event | Command) -> bytes:
    """Return a message as a line."""
    try:
        text = message.model_dump_json(exclude_none=True)
    except PydanticSerializationError:  # it has a lone surrogate, such as in what a test logged
        content = message.model_dump(exclude_none=True)
        text = well_formed(json.dumps(content, ensure_ascii=False))
    return text.encode() + b"\n"


def read_event(line: bytes) -> Event | None:
    """Return the event in a line; None if it is not one."""
    try:
        return _EVENT.validate_json(line)
    except ValidationError:
        return None


def read_command(line: bytes) -> Command | None:
    """Return the command in a line; None if it is not one."""
    try:
        return _COMMAND.validate_json(line)
    except ValidationError:
        return None
