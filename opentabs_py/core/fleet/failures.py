"""The errors that a call can end with in a fleet, besides those of one machine."""

from collections.abc import Mapping

from opentabs_py.core import codes
from opentabs_py.core.failures import MAY_HAVE_RUN
from opentabs_py.core.plugin_names import TABS_LIST
from opentabs_py.core.text import quantity
from opentabs_py.errors import CallRefusedError, ChainError, ErrorDetail


def no_worker(owner: str) -> ChainError:
    """Return the error for a call of a tool that no worker serves now."""
    message = (
        f"No worker of the fleet serves {owner} now. See `opentabs fleet status`, and start "
        "one with `opentabs worker`."
    )
    return ChainError(ErrorDetail(codes.NO_WORKER, message, category="connection", retryable=True))


def no_workers(fleet: str, nats: str, labels: Mapping[str, str]) -> ChainError:
    """Return the error for a call while no worker can be used.

    Args:
        fleet: The fleet's name.
        nats: The addresses of the NATS servers.
        labels: What a worker's labels must be.
    """
    wanted = ", ".join(f"{key}={value}" for key, value in labels.items())
    labelled = f" labelled {wanted}" if wanted else ""
    message = (
        f"No worker{labelled} takes calls in the fleet {fleet!r} at {nats}, so there are no "
        "tools now. See `opentabs fleet status`, and start one with `opentabs worker`."
    )
    return ChainError(ErrorDetail(codes.NO_WORKER, message, category="connection", retryable=True))


def no_browser() -> ChainError:
    """Return the error for a tab to open where no worker that takes calls has a browser."""
    message = (
        "No worker of the fleet has a browser now. See `opentabs fleet status`, and start one "
        "with `opentabs worker --plugin DIR`."
    )
    return ChainError(ErrorDetail(codes.NO_WORKER, message, category="connection", retryable=True))


def worker_cannot_ask(worker: str, tool: str, rule: str) -> CallRefusedError:
    """Return the error for a call that a person would have to allow in its worker.

    Args:
        worker: Its name.
        tool: The tool's name.
        rule: The rule that allows it.
    """
    message = (
        f"In the settings of the worker {worker}, {tool} needs its user's permission, and a "
        f'worker cannot ask. Allow it there: set "{rule}" = "auto" under [permissions] in the '
        f"worker's settings file, or start the worker with --permission {rule}=auto."
    )
    return CallRefusedError(ErrorDetail(codes.CONSENT_NEEDED, message, category="permission"))


def no_such_tab(tab_id: int) -> ChainError:
    """Return the error for a `tabId` that no worker has."""
    message = (
        f"No worker of the fleet has a tab {tab_id}. {TABS_LIST} lists the tabs. Leave out "
        "tabId to use any."
    )
    return ChainError(ErrorDetail(codes.TAB_NOT_FOUND, message, category="tab"))


def worker_lost(worker: str) -> ChainError:
    """Return the error for a call whose worker is gone."""
    message = f"The worker {worker} went away during the call. {MAY_HAVE_RUN}"
    return ChainError(ErrorDetail(codes.WORKER_LOST, message, category="lost"))


def invalid_worker_answer(worker: str, why: str) -> ChainError:
    """Return the error for a call whose worker sent something that is not valid.

    Args:
        worker: Its name.
        why: What is not valid, without a capital or a period.
    """
    message = f"The worker {worker} sent an invalid answer ({why}). {MAY_HAVE_RUN}"
    return ChainError(ErrorDetail(codes.FLEET_PROTOCOL, message, category="lost"))


def unreadable_request(worker: str, why: str) -> ChainError:
    """Return the error for a call that its worker cannot read.

    Args:
        worker: Its name.
        why: What is not valid, without a capital or a period.
    """
    message = (
        f"The worker {worker} cannot read the request ({why}), so the tool did not run. Use "
        "one version of opentabs-py, and one OPENTABS_MESSAGE_LIMIT, in the whole fleet."
    )
    return ChainError(ErrorDetail(codes.FLEET_INVALID_REQUEST, message, category="connection"))


def not_linked(nats: str, *, sent: bool) -> ChainError:
    """Return the error for a call whose endpoint has lost NATS for too long.

    Args:
        nats: The addresses of the NATS servers.
        sent: Whether a part of the call has been sent.
    """
    then = MAY_HAVE_RUN if sent else "The tool did not run. Call again once NATS is back."
    message = f"NATS at {nats} cannot be reached; restart it. {then}"
    return ChainError(
        ErrorDetail(codes.FLEET_NOT_CONNECTED, message, category="lost", retryable=not sent)
    )


def fleet_busy(waiting: int, retry_after: float, running: int | None = None) -> ChainError:
    """Return the error for a call that may not wait, or has waited too long.

    Args:
        waiting: How many others do.
        retry_after: In how many seconds there may be room.
        running: How many calls its client runs, if it may run no more.
    """
    why = "All suitable workers are busy"
    if running is not None:
        why = f"This client already has {quantity(running, 'call')} running, which is its limit"
    queued = f" and {waiting} call{'s are' if waiting > 1 else ' is'} already queued"
    message = (
        f"{why}{queued if waiting else ''}. The call did not run. Call again after retryAfterMs."
    )
    return ChainError(
        ErrorDetail(
            codes.FLEET_BUSY,
            message,
            category="rate_limit",
            retryable=True,
            retry_after=round(retry_after, 3),
        )
    )
