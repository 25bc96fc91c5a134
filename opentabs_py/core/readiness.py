"""Readiness of a process for calls, with the reason if it is not ready."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from opentabs_py.core.fleet.messages import State


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a process can take calls now.

    Attributes:
        ready: Whether it can.
        why: What it has, or what is missing; one line.
    """

    ready: bool
    why: str


STARTING: Final = Readiness(ready=False, why="it is starting")
_NOT_LINKED: Final = Readiness(ready=False, why="not connected to NATS")


def of_server(*, needs_browser: bool, connected: bool) -> Readiness:
    """Return the readiness of a server.

    Args:
        needs_browser: Whether it has anything for a browser to do.
        connected: Whether an extension is connected.
    """
    if not needs_browser:
        return Readiness(ready=True, why="its tools need no browser")
    if not connected:
        return Readiness(ready=False, why="no extension is connected")
    return Readiness(ready=True, why="an extension is connected")


def of_endpoint(*, linked: bool, workers: int) -> Readiness:
    """Return the readiness of an endpoint.

    Args:
        linked: Whether it is connected to NATS.
        workers: How many workers it can use.
    """
    if not linked:
        return _NOT_LINKED
    if not workers:
        return Readiness(ready=False, why="no worker can be used")
    return Readiness(ready=True, why=f"workers: {workers}")


def of_worker(*, linked: bool, state: State, browsers: Mapping[str, bool]) -> Readiness:
    """Return the readiness of a worker.

    Args:
        linked: Whether it is connected to NATS.
        state: What it announces.
        browsers: Whether each of its browsers is connected, by name.
    """
    if not linked:
        return _NOT_LINKED
    if state != "serving":
        return Readiness(ready=False, why=f"it is {state}")
    missing = [name for name, connected in browsers.items() if not connected]
    if missing:
        return Readiness(ready=False, why=f"not connected: {', '.join(missing)}")
    return Readiness(ready=True, why=f"browsers connected: {len(browsers)}")
