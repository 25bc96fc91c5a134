"""`opentabs verify`: make recorded calls again, and say how the site has changed."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import typer

from opentabs_py.cli.exit_codes import code_of_signal
from opentabs_py.cli.option_groups import grouped
from opentabs_py.cli.options import (
    BrowserOptions,
    Json,
    PluginDirs,
    PluginOptions,
    PluginSettings,
    gather_settings,
)
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.config.settings import Settings
    from opentabs_py.core.drift.report import DriftReport
    from opentabs_py.core.recording.exchange import Recording
    from opentabs_py.session.verifying import Interruption

_LEFT_OUT = frozenset({"node_modules", "dist", ".git", ".venv"})


@grouped
def verify(
    where: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR|FILE.har",
            help="The plugin's directory, whose recordings are all used, or some recordings.  "
            "\\[default: the current directory]",
        ),
    ] = None,
    plugin: PluginDirs = None,
    set_: PluginSettings = None,
    *,
    browser: BrowserOptions,
    site: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Use the same site elsewhere, such as on a staging server.  "
            "\\[default: the recorded URL]",
        ),
    ] = None,
    writes: Annotated[
        bool,
        typer.Option(
            "--writes", help="Also call tools without a readOnlyHint, which may change something."
        ),
    ] = False,
    fail_on: Annotated[
        Literal["harmless", "tool", "schema"],
        typer.Option(
            help="The lowest severity that fails the command: any drift, a broken tool, or only a "
            "broken output schema. Other drift is still reported.",
        ),
    ] = "harmless",
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the report as JUnit XML."),
    ] = None,
    json_: Json = False,
) -> None:
    """Repeat recorded calls on the live site, and report what has changed there.

    Compares responses and results with the recorded ones by shape: which members there are, and of
    which types, but not their values. A member counts as required only if all recordings have it,
    so two recordings tell more than one.

    Tools without a readOnlyHint are not called unless you pass --writes. Drift is not reported
    where the site asks for a sign-in, limits the rate of requests, or does not respond.

    Exit codes: 0 nothing has changed; 1 something has; 2 usage error; 3 inconclusive; 130
    interrupted (143 by SIGTERM): the report has the calls made until then.

    [dim]opentabs verify . --signed-in work --junit test-results/drift.xml[/]
    """
    from opentabs_py.browser.urls import web_address
    from opentabs_py.cli.log import log_to_stderr
    from opentabs_py.cli.run import run
    from opentabs_py.plugins.load import is_plugin
    from opentabs_py.session.verifying import Interruption

    if site is not None:
        try:
            site = web_address(site)
        except ValueError as error:
            raise ConfigError(f"Cannot use --site {site}: {error}.") from None
        if urlsplit(site)[2:] not in (("", "", ""), ("/", "", "")):
            raise ConfigError(
                f"Cannot use --site {site}: the paths are those of the recording. Name only the "
                "site, such as https://staging.example.com."
            )
    places = where or [Path()]
    for each in places:
        if each.suffix != ".har" and not each.exists():
            raise ConfigError(f"{each} does not exist. Name a plugin directory or a recording.")
    directories = [each for each in places if each.is_dir() and is_plugin(each)]
    settings = gather_settings(
        PluginOptions(plugin=[*(plugin or ()), *directories], set_=set_),
        browser,
        no_review=tuple(directories) or None,
    ).for_own_use(permissions={"default": "auto"}, strict_output=True)
    if not (settings.plugins or settings.plugin_folders or settings.webmcp):
        raise ConfigError(
            "There is no plugin here. Name its directory: opentabs verify DIR, or --plugin DIR; or "
            "name pages with tools of their own in the setting webmcp (docs/webmcp.md)."
        )
    if junit is not None:
        _check_writable(junit)
    recordings = _read_all(places)
    log_to_stderr(level=logging.WARNING)

    interruption = Interruption()

    async def check() -> int:
        from opentabs_py.cli.terminal import warn, write_json
        from opentabs_py.cli.verify_report import print_report
        from opentabs_py.core.drift.formats import to_json, to_junit

        report = await _verify(recordings, settings, interruption, site=site, writes=writes)
        ended_by = interruption.by_signal
        code = report.exit_code(fail_on) if ended_by is None else code_of_signal(ended_by)
        if json_:
            write_json(to_json(report, exit_code=code))
        else:
            print_report(report)
        if junit is not None:
            _write(junit, to_junit(report))
        if interruption.is_requested:
            warn("The run was interrupted, so the report has only the calls made until then.")
        return code

    raise typer.Exit(run(check, on_signal=interruption.request))


def _check_writable(file: Path) -> None:
    """Check that the report can be written, before the calls that it is about.

    Raises:
        ConfigError: It cannot.
    """
    from opentabs_py.config.files import check_writable

    try:
        check_writable(file)
    except OSError as error:
        raise ConfigError(f"Cannot write {file}: {error.strerror}. Name another file.") from error


def _read_all(places: Sequence[Path]) -> "Mapping[str, Recording]":
    """Return the recordings with calls, by file.

    Raises:
        ConfigError: There is none.
        RecordingError: One cannot be read.
    """
    from opentabs_py.cli.terminal import warn
    from opentabs_py.recording.files import read_recording

    files = [file for place in places for file in _find(place)]
    found = {str(file): read_recording(file) for file in dict.fromkeys(files)}
    with_calls = {file: each for file, each in found.items() if each.calls}
    for file, recording in found.items():
        if not recording.calls:
            warn(f"{file} has no calls of tools, so there is nothing to repeat.")
    if not with_calls:
        looked = " and ".join(str(place.resolve()) for place in places)
        raise ConfigError(
            f"There is no recording with calls of tools in {looked}. Make one: opentabs record URL "
            "--out tests/NAME.har (docs/drift.md)."
        )
    return with_calls


def _find(place: Path) -> Sequence[Path]:
    if not place.is_dir():
        return [place]
    return sorted(
        file
        for file in place.rglob("*.har")
        if not _LEFT_OUT.intersection(file.relative_to(place).parts)
    )


async def _verify(
    recordings: "Mapping[str, Recording]",
    settings: "Settings",
    interruption: "Interruption",
    *,
    site: str | None,
    writes: bool,
) -> "DriftReport":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from opentabs_py.cli.plugin_warnings import warn_of_plugins
    from opentabs_py.cli.terminal import err
    from opentabs_py.core.drift.judge import judge
    from opentabs_py.core.drift.report import DriftReport, RecordingVerdict
    from opentabs_py.core.sites.origins import origin_of
    from opentabs_py.session.session import OpenTabs
    from opentabs_py.session.verifying import run_again

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        total = sum(len(each.calls) for each in recordings.values())
        task = bar.add_task("Starting a browser", total=total)
        async with OpenTabs(settings=settings) as tabs:
            warn_of_plugins(tabs)
            verdicts: list[RecordingVerdict] = []
            for file, recorded in recordings.items():
                bar.update(task, description=f"Calling the tools of {Path(file).name}")
                advance = partial(bar.advance, task)
                live = await run_again(
                    tabs,
                    recorded,
                    site=site,
                    writes=writes,
                    on_call=advance,
                    interruption=interruption,
                )
                others = [
                    each
                    for each in recordings.values()
                    if each is not recorded and origin_of(each.url) == origin_of(recorded.url)
                ]
                verdicts.append(judge(file, recorded, others, live, settings.volatile))
    return DriftReport(verdicts)


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write {file}: {error.strerror}.") from error
