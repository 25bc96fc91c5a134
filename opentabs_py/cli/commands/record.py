"""`opentabs record`: keep what passes between pages and their site, for tests without the site."""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from shlex import quote
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.markup import escape

from opentabs_py.cli.exit_codes import SCRIPT_FAILED
from opentabs_py.cli.option_groups import grouped
from opentabs_py.cli.options import BrowserOptions, NoReview, PluginOptions, gather_settings
from opentabs_py.core.text import quantity
from opentabs_py.errors import BrowserError, ConfigError, RecordingError

if TYPE_CHECKING:
    from playwright.async_api import Page

    from opentabs_py.config.settings import Settings
    from opentabs_py.core.recording.exchange import Recording
    from opentabs_py.session.recording import SessionRecorder
    from opentabs_py.session.session import OpenTabs

    Use = Callable[[Any, "OpenTabs"], Awaitable[None]]

NO_SCREEN = (
    "There is no screen to show the site on. Let a script use it (--script FILE.py), only call "
    "tools (--headless), or use a virtual display: xvfb-run -a."
)
SHOWN = 4  # places in which something was found


@grouped
def record(
    url: Annotated[str, typer.Argument(metavar="URL", help="The page to open first.")],
    *,
    plugins: PluginOptions,
    browser: BrowserOptions,
    no_review: NoReview = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file to write, with its bodies in a directory beside it.  "
            "\\[default: the site's name in the current directory]",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a recording.")] = False,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.py",
            help="Run this script instead of using the site by hand. It defines "
            "`async def use(page, opentabs)`.",
        ),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            "--scrub",
            metavar="TEXT",
            help="Also replace this string, such as your name. Repeatable.",
        ),
    ] = None,
) -> None:
    """Record a site while you use it and call tools, so that tests can replay it without the site.

    Opens a browser. Use the site in it, and call tools from the console or from an MCP client; then
    press Enter, close the window or press Ctrl-C. Writes a HAR that also contains the tool calls.

    Cookies, tokens, e-mail addresses, phone numbers and the names of the signed-in user are
    replaced before anything is written, each always by the same placeholder.
    The setting `scrub` has more rules. Read a recording before you publish it.

    Exit codes: 0 recorded; 1 the script failed, and what was recorded until then is written; 2
    usage error; 3 cannot record (no browser, the page does not open).

    [dim]opentabs record https://chat.example.com/ --signed-in work --out tests/export.har[/]
    """
    from opentabs_py.browser.screen import has_screen
    from opentabs_py.browser.urls import web_address
    from opentabs_py.cli.log import log_to_stderr
    from opentabs_py.cli.run import run
    from opentabs_py.recording.files import check_place

    try:
        url = web_address(url)
    except ValueError as error:
        raise ConfigError(f"Cannot open {url!r}: {error}.") from None
    file = out or Path(f"{urlsplit(url).hostname}.har")
    check_place(file)
    if file.exists() and not force:
        raise RecordingError(f"{file} already exists. Replace it with --force, or use --out.")
    use = None if script is None else _load_script(script)
    headed = use is None if browser.headed is None else browser.headed
    if use is None and headed and not has_screen():
        raise BrowserError(NO_SCREEN)
    settings = gather_settings(
        plugins,
        browser,
        no_review=tuple(no_review or ()) or None,
        headed=headed,
    ).for_own_use()
    if use is not None:  # what the script calls is what its author wants
        settings = settings.model_copy(update={"permissions": {"default": "auto"}})
    if secret:
        scrub = replace(settings.scrub, texts=(*settings.scrub.texts, *secret))
        settings = settings.model_copy(update={"scrub": scrub})
    log_to_stderr()
    session = _Session(url, file, settings, plugins.load_tools(), use)
    raise typer.Exit(run(session.run, on_signal=lambda _number: session.stop()))


class _Session:
    """One recording, from the browser's start to the file."""

    def __init__(
        self, url: str, file: Path, settings: "Settings", tools: list[Any], use: "Use | None"
    ) -> None:
        import anyio

        self._url = url
        self._file = file
        self._settings = settings
        self._tools = tools
        self._use = use
        self._ended = anyio.Event()

    def stop(self) -> bool:
        """End the recording, and write it; the second time, return false: end at once."""
        if self._use is not None or self._ended.is_set():
            return False
        self._ended.set()
        return True

    async def run(self) -> int:
        from opentabs_py.cli.plugin_warnings import warn_of_plugins
        from opentabs_py.session.recording import SessionRecorder
        from opentabs_py.session.session import OpenTabs

        async with OpenTabs(tools=self._tools, settings=self._settings) as tabs:
            warn_of_plugins(tabs)
            recorder = await SessionRecorder.start(tabs, self._url)
            page = await tabs.open(self._url)
            failure = None
            try:
                await self._watch(tabs, page, recorder)
            except (Exception, SystemExit) as error:  # noqa: BLE001 (usually the script's)
                failure = error
            traffic = await recorder.stop()
            dead = _driver_error(tabs)
        if dead is not None and not traffic.exchanges:
            raise dead
        recording = self._scrub(traffic)
        self._write(recording)
        if dead is not None:
            raise dead
        if failure is not None:
            if self._use is None:
                raise failure  # ours: there is no script
            from opentabs_py.cli.terminal import print_error

            what = f"{type(failure).__name__}: {failure}"
            print_error(RecordingError(f"The script failed{_line(failure, self._use)}: {what}"))
            return SCRIPT_FAILED
        return 0

    async def _watch(self, tabs: "OpenTabs", page: "Page", recorder: "SessionRecorder") -> None:
        import anyio

        from opentabs_py.cli.keyboard import wait_enter
        from opentabs_py.cli.terminal import err

        if self._use is not None:
            await recorder.wait_read()  # the program may leave the page at once
            await self._use(page, tabs)
            return
        tabs.internals.keep_history()
        headed = self._settings.headed
        where = "Use the site in the window." if headed else "The browser has no window."
        err.print(f"Recording [bold]{escape(page.url)}[/]. {where}")
        console = escape(tabs.console_url(expires=False))
        err.print(f"Call tools from the console, {console}", soft_wrap=True)
        err.print(f"or from an MCP client at {escape(tabs.mcp_url)}.", soft_wrap=True)
        ways = [
            *(["press [bold]Enter[/] here"] if sys.stdin.isatty() else []),
            *(["close the window"] if headed else []),
            "press [bold]Ctrl-C[/]",
        ]
        err.print(f"When you are done, {' or '.join(ways)}.")

        async def end_after(wait: Callable[[], Awaitable[None]]) -> None:
            await wait()
            self._ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end_after, tabs.browser.wait_gone)
            if sys.stdin.isatty():
                tasks.start_soon(end_after, wait_enter)
            with err.status("") as status:
                while not self._ended.is_set():
                    status.update(recorder.summary)
                    with anyio.move_on_after(0.5):
                        await self._ended.wait()
            tasks.cancel_scope.cancel()

    def _scrub(self, recording: "Recording") -> "Recording":
        from rich.progress import Progress

        from opentabs_py.cli.terminal import err
        from opentabs_py.core.recording.scrub import scrub

        total = 2 * (len(recording.exchanges) + len(recording.sockets))
        with Progress(console=err, transient=True) as bar:
            task = bar.add_task("Taking secrets out", total=total)
            return scrub(recording, self._settings.scrub, step=lambda: bar.advance(task))

    def _write(self, recording: "Recording") -> None:
        from opentabs_py import __version__
        from opentabs_py.cli.terminal import err, warn
        from opentabs_py.recording.files import bodies_dir, write_recording

        if not recording.exchanges:
            raise BrowserError(f"No request to {self._url} was seen, so there is no recording.")
        try:
            write_recording(recording, self._file, version=__version__)
        except RecordingError as error:  # the disk has filled, say; nobody will do all of it again
            self._file = Path(mkdtemp(prefix="opentabs-")) / self._file.name
            write_recording(recording, self._file, version=__version__)
            warn(f"{error} It is in {self._file} instead.")
        _print_scrubbed(recording)
        lost = [
            each
            for each in recording.exchanges
            if each.response is not None and each.response.body is None and each.error is None
        ]
        if lost:
            warn(f"{quantity(len(lost), 'response')} came without a body: Chromium had dropped it.")
        err.print(
            f"[green]✓[/] {quantity(len(recording.exchanges), 'request')}, "
            f"{quantity(len(recording.sockets), 'WebSocket')} and "
            f"{quantity(len(recording.calls), 'call')} in [bold]{escape(str(self._file))}[/] and "
            f"{escape(bodies_dir(self._file).name)}/",
            soft_wrap=True,
        )
        if recording.calls:
            mark = f'@pytest.mark.opentabs(recording="{self._file.name}")'
            following = f"Replay it in a test: {mark}"
        else:
            command = f"opentabs new NAME --from {quote(str(self._file))}"
            following = f"Make a plugin: {command}"
        err.print(f"[dim]{escape(following)}[/]", soft_wrap=True)


def _line(error: BaseException, use: "Use") -> str:
    """Return where in the script an error was raised, as text."""
    import inspect
    import traceback

    script: Any = getattr(inspect.unwrap(use), "__code__", None)  # a partial has none
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if script is not None and frame.filename == script.co_filename:
            return f" at {Path(frame.filename).name}:{frame.lineno}"
    return ""


def _driver_error(tabs: "OpenTabs") -> BrowserError | None:
    try:
        tabs.check_driver()
    except BrowserError as error:
        return error
    return None


def _print_scrubbed(recording: "Recording") -> None:
    from opentabs_py.cli.terminal import err, new_table
    from opentabs_py.core.text import shorten

    if not recording.scrubbed:
        err.print("No secrets were recognized.")
        return
    table = new_table("scrubbed", "different", "times", "for example by", "found in")
    for column in table.columns[1:3]:
        column.justify = "right"
    for kind in dict.fromkeys(each.kind for each in recording.scrubbed):
        mine = [each for each in recording.scrubbed if each.kind == kind]
        places = [*dict.fromkeys(each.where for each in mine)]
        more = ", …" if len(places) > SHOWN else ""
        table.add_row(
            kind,
            str(len(mine)),
            str(sum(each.count for each in mine)),
            escape(shorten(mine[0].replacement, 24)),
            escape(", ".join(places[:SHOWN]) + more),
        )
    err.print(table)


def _load_script(file: Path) -> "Use":
    import inspect
    import runpy

    try:
        use = runpy.run_path(str(file)).get("use")
    except OSError as error:
        raise ConfigError(f"Cannot read {file}: {error.strerror}.") from None
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{file} failed: {type(error).__name__}: {error}") from error
    if not inspect.iscoroutinefunction(use):
        raise ConfigError(f"{file} has no `async def use(page, opentabs)`.")
    return use
