"""Known MCP clients, by the names they send."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import anyio
from mcp.server.context import ServerRequestContext

from opentabs_py.core.text import one_line, shorten

logger = logging.getLogger(__name__)

LINKS_SINCE: Final = "2025-06-18"  # the first revision with resource links in results
# s; timeouts that clients have by default, or that users choose
ROUND_TIMES: Final = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300)
NAME_MAX: Final = 80  # characters; clients say what they like
ABOUT: Final = 0.2  # s; tolerance for the latency of the request and of its cancellation


@dataclass(frozen=True, slots=True)
class KnownClient:
    """A third-party client.

    Attributes:
        pattern: An `fnmatch` pattern for its name in lower case.
        reads_links: Whether it reads resource links in results. Frameworks that do not support
            them drop the link, or the whole result; MCP has no way to ask a client.
        timeout: The setting that makes it wait `{seconds}` or `{milliseconds}` for a call.
    """

    pattern: str
    reads_links: bool = False
    timeout: str = "its tool call timeout to {seconds:g} s"


_OTHER: Final = KnownClient("*")
_KNOWN: Final = (
    KnownClient("claude-code*", True, "MCP_TOOL_TIMEOUT={milliseconds:.0f} in its environment"),
    KnownClient("codex-mcp-client*", False, "tool_timeout_sec = {seconds:g} in its config.toml"),
    KnownClient("gemini-cli-mcp-client*", False, "timeout: {milliseconds:.0f} in settings.json"),
    KnownClient("mcp-inspector*", True, "Request Timeout to {milliseconds:.0f} in its settings"),
    KnownClient("visual[ -]studio[ -]code*", True),
    # The Python SDK's default, which most frameworks keep.
    KnownClient(
        "mcp",
        False,
        "read_timeout_seconds of its session to {seconds:g}, or its framework's equivalent "
        "(`opentabs config --client NAME` prints it)",
    ),
    _OTHER,
)


def client_name(ctx: ServerRequestContext[Any]) -> str | None:
    """Return a client's name and version, on one line; None if it does not say its name."""
    client = ctx.session.client_params
    if client is None:
        return None
    version = client.client_info.version[:NAME_MAX]
    return shorten(one_line(f"{_name(ctx)} {version}").strip(), NAME_MAX) or None


def reads_links(ctx: ServerRequestContext[Any]) -> bool:
    """Return whether a client is known to read resource links in results."""
    return ctx.protocol_version >= LINKS_SINCE and _known(_name(ctx)).reads_links


@contextmanager
def noticing_timeouts(
    ctx: ServerRequestContext[Any], tool: str, *, enough: float, now: Callable[[], float]
) -> Generator[None]:
    """Log a warning if a client cancels a call after what looks like its timeout.

    Args:
        ctx: The call's request.
        tool: The tool's name.
        enough: Seconds that a client should wait for a call.
        now: The clock, in seconds.
    """
    began = now()
    try:
        yield
    except anyio.get_cancelled_exc_class():
        waited = now() - began
        if any(abs(waited - each) <= ABOUT for each in ROUND_TIMES):
            _log_timeout(_name(ctx), tool, waited, enough)
        raise


def _log_timeout(name: str, tool: str, waited: float, enough: float) -> None:
    setting = _known(name).timeout.format(seconds=enough, milliseconds=1000 * enough)
    logger.warning(
        "The client %s gave up on %s after %.1f s, probably at its own timeout. To let it wait "
        "as long as a call may take, set %s.",
        shorten(one_line(name), 60) or "without a name",
        tool,
        waited,
        setting,
    )


def _name(ctx: ServerRequestContext[Any]) -> str:
    client = ctx.session.client_params
    return "" if client is None else client.client_info.name[:NAME_MAX]


def _known(name: str) -> KnownClient:
    return next(each for each in _KNOWN if fnmatchcase(name.lower(), each.pattern))
