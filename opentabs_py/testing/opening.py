"""Open what a test needs: a server and a browser for each of its people."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.browser.signed_in import read_sign_in
from opentabs_py.config.settings import Settings
from opentabs_py.core.limits import Limits
from opentabs_py.errors import OpenTabsError
from opentabs_py.session.arguments import check_list
from opentabs_py.testing.chain import Chain
from opentabs_py.testing.item_options import (
    PEOPLE,
    clock_of,
    faults_seed_of,
    marks_of,
    recording_of,
)
from opentabs_py.testing.people import ALONE, People
from opentabs_py.testing.recordings.recording import MarkedRecording
from opentabs_py.testing.reports.run_stash import REPORTING
from opentabs_py.testing.slots import ChainSlot, ChainSlots
from opentabs_py.testing.thread import ServerThread
from opentabs_py.testing.turn import Turn


@contextmanager
def failing_plainly() -> Generator[None]:
    """Report our own errors as failures of the test, without a traceback."""
    try:
        yield
    except OpenTabsError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


@dataclass(frozen=True, slots=True)
class ServedByTest:
    """What the servers of a test serve, and how.

    Attributes:
        plugins: Directories of built plugins.
        tools: Tools written in Python.
        settings: The servers' settings.
        limits: The time limits of calls.
    """

    plugins: Sequence[str | Path]
    tools: Sequence[Any]
    settings: Settings
    limits: Limits


@contextmanager
def opened(
    request: pytest.FixtureRequest, chain_slots: ChainSlots, served: ServedByTest
) -> Generator[People]:
    """Yield a turn with a browser for each person of a test; usually there is one."""
    marks, marked = marks_of(request.node), recording_of(request)
    names = marks.browsers or [ALONE]
    is_offline = marked is not None and marked.is_offline
    slots = chain_slots.first(len(names), offline=is_offline)
    with ExitStack() as stack:
        with failing_plainly():
            # The servers start while Playwright does.
            starting = _start_servers(request, slots, served, stack, is_offline=is_offline)
            request.getfixturevalue("_opentabs_browsers")
            context_args = _context_args(request)
            state = context_args.pop("storage_state", None)
            states = {name: _sign_in(marks.sign_in_of(name), state) for name in names}
            chains = _open_browsers(request, slots, starting, context_args)
        turns = {
            name: _turn(request, name, chain, chain_slots.thread, served.limits, marked)
            for name, chain in zip(names, chains, strict=True)
        }
        people = request.node.stash[PEOPLE] = People(turns)
        stack.callback(people.end)
        with failing_plainly():
            people.begin(states)
        yield people


def _start_servers(
    request: pytest.FixtureRequest,
    slots: Sequence[ChainSlot],
    served: ServedByTest,
    stack: ExitStack,
    *,
    is_offline: bool,
) -> Sequence[Chain]:
    """Start a server for each person.

    Only the first may have the port and the profile of the settings, and not if it is to be fresh,
    or can reach nothing but a recording: the one that tests share keeps them.
    """
    check_list("The value of the fixture opentabs_plugins", served.plugins)
    check_list("The value of the fixture opentabs_tools", served.tools)
    launch_args = request.getfixturevalue("browser_type_launch_args")
    is_headed = served.settings.headed or launch_args.get("headless") is False
    settings = served.settings.model_copy(update={"headed": is_headed})
    beside = settings.model_copy(update={"port": 0, "profile": None})
    is_fresh = marks_of(request.node).fresh_profile
    own = is_fresh or _context_mark(request) is not None
    plugins = [Path(each) for each in served.plugins]
    chains: list[Chain] = []
    for slot in slots:
        used = beside if chains or is_fresh or is_offline else settings
        chain = slot.begin(plugins, served.tools, used, own=own)
        stack.callback(slot.release, chain)
        chains.append(chain)
    return chains


def _open_browsers(
    request: pytest.FixtureRequest,
    slots: Sequence[ChainSlot],
    chains: Sequence[Chain],
    context_args: Mapping[str, Any],
) -> Sequence[Chain]:
    launch_args = request.getfixturevalue("browser_type_launch_args")
    browser_type = request.getfixturevalue("browser_type")
    return [
        slot.open(chain, browser_type, launch_args=launch_args, context_args=context_args)
        for slot, chain in zip(slots, chains, strict=True)
    ]


def _context_args(request: pytest.FixtureRequest) -> dict[str, Any]:
    mark = _context_mark(request)
    args = dict(request.getfixturevalue("browser_context_args"))
    return args if mark is None else {**args, **mark.kwargs}


def _context_mark(request: pytest.FixtureRequest) -> pytest.Mark | None:
    mark: pytest.Mark | None = request.node.get_closest_marker("browser_context_args")
    return mark


def _sign_in(name: str | None, otherwise: Any) -> Any:
    return otherwise if name is None else read_sign_in(name)


def _turn(
    request: pytest.FixtureRequest,
    name: str,
    chain: Chain,
    thread: ServerThread,
    limits: Limits,
    marked: MarkedRecording | None,
) -> Turn:
    reporting = request.config.stash.get(REPORTING, None)
    return Turn(
        chain,
        thread,
        limits=limits,
        recorder=request.getfixturevalue("_artifacts_recorder"),
        output=Path(request.getfixturevalue("output_path")),
        runs_on=clock_of(request.node),
        faults_seed=faults_seed_of(request.node),
        traced=request.config.getoption("--tracing", default="off") != "off",
        marked=marked,
        listener=None if reporting is None else reporting.notes(request.node.nodeid, name),
    )
