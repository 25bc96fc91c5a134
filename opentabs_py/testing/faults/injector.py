"""Inject faults into a call's messages, and into the browser.

Faults on the hops `port` and `event` are injected in the page's relay, those on `websocket` and
`mcp` in this process. Faults in the browser are real: its service worker is stopped, its tab
closed, its connection closed.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import resources
from random import Random
from time import monotonic
from typing import Any, Literal, get_args

from playwright.sync_api import BrowserContext, CDPSession, Error, Page, Worker

from opentabs_py.bridge.connection import Socket
from opentabs_py.core import fault_injection
from opentabs_py.core.fault_injection import Action, Direction, FaultLog, Hop, Rule
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.faults.faulty_links import FaultySocket, Transport, faulty_streams
from opentabs_py.testing.faults.message_faults import HOPS, MessageFaults
from opentabs_py.testing.faults.message_kinds import check_kind
from opentabs_py.testing.faults.processes import kill_extension_process
from opentabs_py.testing.thread import ServerThread

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these

Death = Literal["stop", "close", "sigkill"]

WITHIN = 10.0  # s; upper bound for operations that take milliseconds
REPORTED_WITHIN = 2.0  # s; a page's console is read within milliseconds
_IN_BROWSER = ("port", "event")
_FIRED = "OpenTabs: fault "  # prefix of the JSON that the page's side writes to its console
_GOING_AWAY = 1012  # RFC 6455 and IANA: service restart


class FaultInjector:
    """The `opentabs.faults` of a test.

    Each of the five message faults selects messages by `kind` (`tool.progress`, `tool.result`,
    `tool.dispatch`, ...; on `mcp`, `notifications/progress` and so on; the error for an unknown
    kind names those of its hop), then by `nth`, counted from 1, or by `when(text)`. Faults are
    tried in the order in which they were injected, and the first match is applied. They end with
    the test, or with `clear()`. A fault that affected no message fails the test, unless it is
    `optional`.

    Attributes:
        seed: The seed of all randomness: which characters are corrupted, and `random`.
        random: For the test's own random choices; runs with the same seed are identical.
    """

    _session: OpenTabs
    _context: BrowserContext

    def __init__(self, thread: ServerThread) -> None:
        self._thread = thread
        self._messages = MessageFaults()
        self._version = 0  # of what pages were sent
        self._frozen: dict[Page, CDPSession] = {}
        self._restart(0)

    def attach(self, session: OpenTabs, context: BrowserContext) -> None:
        """Connect the injector to a session and its browser, as soon as these are running.

        For this package's own use.
        """
        self._session = session
        self._context = context

    def begin(self, seed: int) -> None:
        """Begin a test with no faults. For this package's own use."""
        self.clear()
        self._thread.do(self._messages.begin, seed)
        self._restart(seed)

    def note_console(self, text: str) -> None:
        """Record a console message about faults in a page; ignore other messages.

        For this package's own use.
        """
        if text.startswith(_FIRED):
            self._thread.do(self._messages.note, *json.loads(text.removeprefix(_FIRED)))

    def wrap_socket(self, socket: Socket) -> Socket:
        """Wrap a socket so that faults on the hop `websocket` apply to it.

        For this package's own use.
        """
        return FaultySocket(socket, partial(self._messages.apply, "websocket"))

    def wrap_streams(self, transport: Transport) -> Transport:
        """Wrap an MCP client's streams so that faults on the hop `mcp` apply to them.

        For this package's own use.
        """
        return faulty_streams(transport, partial(self._messages.apply, "mcp"))

    # --- the log ---

    @property
    def log(self) -> FaultLog:
        """The faults applied in this test so far; `to_json` writes it for `replay`."""
        has_any_in_browser = any(rule.hop in _IN_BROWSER for rule in self._messages.injected)
        for page in self._context.pages:
            if has_any_in_browser and page not in self._frozen:
                self._thread.answers(page)  # with its console messages so far
        return self.log_so_far()

    def log_so_far(self) -> FaultLog:
        """Return the log, without asking pages for faults they have not reported yet.

        For this package's own use.
        """
        return self._thread.do(self._messages.log, self._done)

    def wait_unfired(self) -> list[Rule]:
        """Return the faults that affected no message, although they are not optional.

        Pages report their faults with a short delay, so this waits for them.

        For this package's own use.
        """
        until = monotonic() + REPORTED_WITHIN
        while unfired := self._thread.do(self._messages.unfired):
            if monotonic() > until or not any(rule.hop in _IN_BROWSER for rule in unfired):
                break
            self._thread.sleep(0.02)
        return unfired

    def replay(self, log: FaultLog | str) -> None:
        """Repeat what another run of this test did to its messages.

        Each fault that the test injects from now on is applied to the same messages as in that run,
        whatever it would select now.

        Args:
            log: The log of that run, or its JSON from a failure report.

        Raises:
            ValueError: This is not a valid log, or a fault was already injected.
        """
        if self._messages.injected:
            raise ValueError("A fault was already injected. Call replay() before that.")
        read = fault_injection.read_log(log) if isinstance(log, str) else log
        self._thread.do(partial(self._messages.begin, read.seed, replayed=read))
        self._restart(read.seed)

    # --- injected ---

    def drop(self, hop: Hop, **which: Any) -> None:
        """Drop messages; the class describes how they are selected."""
        self._inject(hop, "drop", **which)

    def delay(self, hop: Hop, seconds: float, **which: Any) -> None:
        """Delay messages, and every message behind them on that hop."""
        self._inject(hop, "delay", seconds=seconds, **which)

    def duplicate(self, hop: Hop, **which: Any) -> None:
        """Send messages twice."""
        self._inject(hop, "duplicate", **which)

    def reorder(self, hop: Hop, **which: Any) -> None:
        """Swap messages with the one that follows them."""
        self._inject(hop, "reorder", **which)

    def corrupt(self, hop: Hop, **which: Any) -> None:
        """Change a character in messages."""
        self._inject(hop, "corrupt", **which)

    @property
    def are_injected(self) -> bool:
        """Whether messages are subject to faults now, or tabs are frozen.

        For this package's own use.
        """
        return bool(self._messages.rules or self._frozen)

    def clear(self) -> None:
        """Remove all injected faults, and unfreeze frozen tabs."""
        for cdp in self._frozen.values():
            _thaw(cdp)
        self._frozen.clear()
        had_any_in_browser = any(rule.hop in _IN_BROWSER for rule in self._messages.rules)
        self._thread.do(self._messages.clear)
        if had_any_in_browser:
            self._update_browser()

    # --- done to the browser ---

    def kill_service_worker(self, how: Death = "stop") -> None:
        """Stop the extension's service worker, as Chrome may do at any time.

        Args:
            how: `stop` stops it as Chrome's developer tools do; `close` closes its target, which
                ends it in the middle of its work; `sigkill` kills its process, which leaves no time
                for any cleanup (Linux only).
        """
        if how not in get_args(Death):
            raise ValueError(f"how={how!r}: it must be one of {get_args(Death)}")
        self._done.append(f"kill_service_worker({how!r})")
        if how == "sigkill":
            kill_extension_process(self._context)
            return
        page = self._any_page()
        cdp = self._context.new_cdp_session(page)
        try:
            if how == "stop":
                _send(cdp, "ServiceWorker.enable")
                _send(cdp, "ServiceWorker.stopAllWorkers")
                return
            for target in _send(cdp, "Target.getTargets")["targetInfos"]:
                if target["type"] == "service_worker" and self._is_ours(target["url"]):
                    _send(cdp, "Target.closeTarget", targetId=target["targetId"])
        finally:
            cdp.detach()

    def disconnect_websocket(self) -> None:
        """Close the connection between server and extension; the extension reconnects."""
        self._done.append("disconnect_websocket()")
        self._thread.do(self._session.internals.bridge.disconnect, _GOING_AWAY, "closed by a test")

    def close_tab(self, page: Page) -> None:
        """Close a tab, without asking the page."""
        self._done.append(f"close_tab({page.url})")
        page.close(run_before_unload=False)

    def navigate(self, page: Page, url: str) -> None:
        """Navigate a page to another URL."""
        self._done.append(f"navigate({page.url}, {url})")
        page.goto(url)

    def freeze_tab(self, page: Page, *, frozen: bool = True) -> None:
        """Freeze all scripts of a tab, including the relay's, or unfreeze them.

        The debugger stops them: Chrome itself freezes only hidden tabs, and it never hides tabs
        that Playwright drives.
        """
        self._done.append(f"freeze_tab({page.url}, {frozen=})")
        cdp = self._frozen.pop(page, None)
        if frozen and cdp is None:
            cdp = self._frozen[page] = self._context.new_cdp_session(page)
            _send(cdp, "Debugger.enable")
            _send(cdp, "Debugger.pause")
        elif not frozen and cdp is not None:
            _thaw(cdp)

    def reload_extension(self) -> None:
        """Reload the extension, as an update does, and wait until it is back."""
        self._done.append("reload_extension()")
        before = self._session.internals.bridge.calls.boot_id
        self._evaluate("() => void setTimeout(() => chrome.runtime.reload(), 0)")
        self._thread.run(self._come_back, before, within=WITHIN)

    # --- how ---

    def _inject(
        self,
        hop: Hop,
        action: Action,
        *,
        kind: str | None = None,
        nth: int | Sequence[int] | None = None,
        when: Callable[[str], bool] | None = None,
        direction: Direction | None = None,
        seconds: float = 0.0,
        optional: bool = False,
    ) -> None:
        if hop not in HOPS:
            raise ValueError(f"{hop!r} is not a valid hop; use one of {', '.join(HOPS)}")
        if when is not None and hop in _IN_BROWSER:
            raise ValueError(
                f"when= is not available on the hop {hop!r}, which is in the browser; "
                "use kind= and nth="
            )
        check_kind(hop, kind, direction)
        counted = (nth,) if isinstance(nth, int) else None if nth is None else tuple(nth)
        number = len(self._messages.injected)
        rule = Rule(hop, action, direction, kind, counted, seconds, number)
        self._thread.do(partial(self._messages.add, rule, when, is_optional=optional))
        if hop in _IN_BROWSER:
            self._update_browser()

    def _restart(self, seed: int) -> None:
        self._done: list[str] = []
        self.seed = seed
        self.random = Random(seed)  # noqa: S311 (it must be reproducible)

    async def _come_back(self, before: str | None) -> None:
        """Wait until another run of the service worker is connected; it may be already."""
        bridge = self._session.internals.bridge
        while bridge.calls.boot_id in (None, before):
            await bridge.changed().wait()
        await bridge.wait_connected()

    def _update_browser(self) -> None:
        self._version += 1
        plan = {
            "draws": fault_injection.draws(self.seed),
            "epoch": self._messages.epoch,
            "version": self._version,
            "rules": [rule.to_json() for rule in self._messages.rules if rule.hop in _IN_BROWSER],
        }
        self._evaluate("faults => chrome.storage.local.set({ faults })", plan)
        # A page without a plugin has no relay, so it never confirms the rules. One that hangs has
        # them once its relay runs again.
        marked = "document.documentElement.dataset.opentabsFaults"
        has_rules = f"version => {marked} === undefined || {marked} === version"
        for page in self._context.pages:
            if self._thread.answers(page):
                page.wait_for_function(has_rules, arg=str(self._version), timeout=WITHIN * 1e3)

    def _evaluate(self, script: str, argument: Any = None) -> None:
        """Run a script in the service worker, retrying while that is dying or starting.

        Without a browser there is nothing to run it in.
        """
        until = monotonic() + WITHIN
        while not self._session.browser.is_gone:
            try:
                self._worker().evaluate(script, argument)
            except Error:
                if monotonic() > until:
                    raise
                self._thread.sleep(0.05)
            else:
                return

    def _worker(self) -> Worker:
        for worker in self._context.service_workers:
            if self._is_ours(worker.url):
                return worker
        return self._context.wait_for_event("serviceworker", timeout=WITHIN * 1000)

    def _is_ours(self, url: str) -> bool:
        return url.startswith(self._session.internals.bridge.origin)

    def _any_page(self) -> Page:
        return self._context.pages[0] if self._context.pages else self._context.new_page()


def _thaw(cdp: CDPSession) -> None:
    with suppress(Error):  # its page is closed
        _send(cdp, "Debugger.disable")
        cdp.detach()


def _send(cdp: CDPSession, method: str, **params: Any) -> Any:
    return cdp.send(method, params)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def relay_faults() -> bytes:
    """Return the script that injects faults in the page's relay."""
    return resources.files("opentabs_py.testing").joinpath("faults.js").read_bytes()
