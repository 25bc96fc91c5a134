"""`opentabs analyze`: say what a site is made of, and what tools it could have."""

import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from opentabs_py.cli.option_groups import grouped
from opentabs_py.cli.options import BrowserOptions, Json, gather_settings
from opentabs_py.core.text import one_line
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.config.settings import Settings
    from opentabs_py.core.recording.exchange import Recording
    from opentabs_py.generate.site import KnownSite


@grouped
def analyze(
    target: Annotated[
        str, typer.Argument(metavar="URL|FILE.har", help="A page of the site, or a recording.")
    ],
    *,
    browser: BrowserOptions,
    wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Wait at most this long for the page's requests to end.",
        ),
    ] = 5.0,
    json_: Json = False,
) -> None:
    """Print what a site is built with, how it authenticates its users, and the tools it could have.

    Opens the page in a headless browser, and sees only what it loads by itself. For anything behind
    a click or a form, record the site with `opentabs record URL`, and pass the file instead of a
    URL.

    [dim]opentabs analyze https://chat.example.com/ --signed-in work[/]
    """
    from opentabs_py.browser.urls import web_address
    from opentabs_py.cli.log import log_to_stderr
    from opentabs_py.cli.run import run
    from opentabs_py.cli.terminal import write_json
    from opentabs_py.generate.site import read_site
    from opentabs_py.recording.files import read_recording

    def show(recording: "Recording", file: str | None = None) -> None:
        site = read_site(recording)
        if json_:
            write_json(_document(site))
        else:
            _print(site, file)

    # `Path.exists` would raise for a name that is too long.
    if "://" not in target and (target.endswith(".har") or os.path.exists(target)):  # noqa: PTH110
        show(read_recording(Path(target)), target)
        return
    try:
        url = web_address(target)
    except ValueError as error:
        raise ConfigError(f"Cannot open {target!r}: {error}, or the name of a recording.") from None
    settings = gather_settings(browser).for_own_use()
    log_to_stderr()

    async def visit() -> int:
        show(await _visit(url, settings, wait))
        return 0

    raise typer.Exit(run(visit))


async def _visit(url: str, settings: "Settings", wait: float) -> "Recording":
    """Return what passes while a page loads, without its secrets."""
    from playwright.async_api import TimeoutError as PlaywrightTimeoutError
    from rich.text import Text

    from opentabs_py.cli.terminal import err
    from opentabs_py.core.recording.scrub import scrub
    from opentabs_py.session.recording import SessionRecorder
    from opentabs_py.session.session import OpenTabs

    with err.status("Starting a browser") as status:
        async with OpenTabs(settings=settings) as tabs:
            recorder = await SessionRecorder.start(tabs, url)
            status.update(Text(f"Opening {url}"))
            page = await tabs.open(url)
            status.update("Watching its requests")
            try:
                if wait:
                    await page.wait_for_load_state("networkidle", timeout=wait * 1000)
            except PlaywrightTimeoutError:
                pass  # it never stops asking
            recording = await recorder.stop()
    return scrub(recording, settings.scrub)


def _document(site: "KnownSite") -> dict[str, Any]:
    auth = site.auth
    return {
        "url": site.recording.url,
        "frameworks": [*site.frameworks],
        "auth": {
            "cookies": [*auth.cookies],
            "headers": [
                {"name": each.name, "from": each.where, "key": each.key or None}
                for each in auth.headers
            ],
            "me": auth.me or None,
        },
        "storage": [*site.storage],
        "tools": [
            {
                "name": tool.name,
                "request": tool.source,
                "description": tool.description,
                "reads": tool.is_read,
                "arguments": [given.name for given in tool.inputs.arguments],
                "pages": tool.pagination.kind if tool.pagination is not None else None,
            }
            for tool in site.tools
        ],
        "other": [str(each) for each in site.left_out],
    }


def _print(site: "KnownSite", file: str | None) -> None:
    from rich.table import Table

    from opentabs_py.cli.terminal import new_table, out

    auth = site.auth
    rows = {
        "built with": ", ".join(site.frameworks) or "nothing that it shows",
        "cookies": ", ".join(auth.cookies) or "none",
        "headers": ", ".join(_header(each.name, each.where, each.key) for each in auth.headers)
        or "none of its own",
        "storage": ", ".join(site.storage) or "empty",
        "about you": auth.me or "no request that says who is signed in",
    }
    about = Table.grid(padding=(0, 2))
    for label, text in rows.items():
        about.add_row(f"[dim]{label}[/]", _plain(text))
    out.print(f"[bold]{_plain(site.recording.url)}[/]\n", soft_wrap=True)
    out.print(about)
    if site.tools:
        tools = new_table("tool", "", "request", "arguments")
        for tool in site.tools:
            tools.add_row(
                _plain(tool.name),
                "[dim]reads[/]" if tool.is_read else "[yellow]writes[/]",
                _plain(tool.source),
                _plain(", ".join(given.name for given in tool.inputs.arguments)),
            )
        out.print()
        out.print(tools)
    if site.left_out:
        out.print("\n[dim]not useful as tools[/]")
        for each in site.left_out:
            out.print(f"  [dim]{_plain(str(each))}[/]", soft_wrap=True)
    out.print(f"\n{_plain(_next_step(site, file))}", soft_wrap=True)


def _next_step(site: "KnownSite", file: str | None) -> str:
    record = f"opentabs record {quote(site.recording.url)}"
    if not site.tools:
        return f"It sent no request that a tool could send. Record it while you use it: {record}"
    if file is not None:
        return f"Make a plugin: opentabs new NAME --from {quote(file)}"
    return f"Make a plugin: {record}, use the site, then opentabs new NAME --from FILE.har"


def _plain(text: str) -> str:
    """Return what a site wrote as markup that shows it, on one line."""
    return escape(one_line(text))


def _header(name: str, where: str, key: str) -> str:
    match where:
        case "constant":
            return name
        case "random":
            return f"{name} (new in each request)"
        case "unknown":
            return f"{name} (from nowhere that a page shows)"
        case _:
            return f"{name} (from {where} {key})"
