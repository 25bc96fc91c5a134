"""`opentabs new`: create a plugin, from a template or from a recording of a site."""

from collections.abc import Collection, Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from opentabs_py.core.plugin_names import mcp_name
from opentabs_py.core.text import quantity
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.generate.site import KnownSite
    from opentabs_py.generate.source import Language


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The plugin's name, such as my-chat.")
    ],
    js: Annotated[
        bool, typer.Option("--js", help="Generate JavaScript instead of TypeScript.")
    ] = False,
    into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory to create.  \\[default: ./NAME]"),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE.har",
            help="Generate tools, and tests that replay it, from a recording of the site.",
        ),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REQUEST",
            help="With --from: generate a tool for this request only, such as "
            '"GET /api/messages". Repeatable.  \\[default: all that are useful]',
        ),
    ] = None,
    prompt: Annotated[
        bool,
        typer.Option(
            "--prompt",
            help="With --from: create nothing; print what to ask a language model for better "
            "names and descriptions.",
        ),
    ] = False,
) -> None:
    """Create a plugin: a first tool, its tests and a page to try it on; or the tools of a site.

    With --from, create the tools of a site from a recording of it, such as `opentabs record` makes:
    one for each operation of its API, or for its pages and forms if it has none. Their tests
    replay the recording, so they need no site. No language model is involved.

    [dim]opentabs new chat && cd chat && opentabs build && opentabs call chat_hello '{}'[/]

    [dim]opentabs record https://chat.example/ && opentabs new chat --from chat.example.har[/]
    """
    language: Language = "js" if js else "ts"
    directory = into or Path(name)
    if from_ is None:
        if tool or prompt:
            raise ConfigError("--tool and --prompt need a recording: --from FILE.har.")
        _create(name, directory, language)
        _say_next(directory, f"opentabs build\n  opentabs call {mcp_name(name, 'hello')} '{{}}'")
        return
    site = _read(from_, tool or [])
    if prompt:
        from opentabs_py.cli.terminal import write_result
        from opentabs_py.generate.prompt import prompt_for

        write_result(prompt_for(site, name))
        return
    _generate(name, directory, language, site)
    _say_next(directory, "opentabs build")


def _read(file: Path, chosen: list[str]) -> "KnownSite":
    from opentabs_py.config.settings import load_settings
    from opentabs_py.core.recording.scrub import scrub
    from opentabs_py.generate.site import read_site
    from opentabs_py.recording.files import read_recording

    recording = read_recording(file)
    if not recording.scrubbed:  # by another program, or it has no secrets
        recording = scrub(recording, load_settings().scrub)
    site = read_site(recording, chosen)
    if not site.tools:
        raise ConfigError(
            f"{file} has nothing that a tool could be made from: no request for JSON, no list and "
            "no form. Use more of the site while you record it."
        )
    return site


def _generate(name: str, directory: Path, language: "Language", site: "KnownSite") -> None:
    from opentabs_py import __version__
    from opentabs_py.cli.terminal import err, new_table, warn
    from opentabs_py.generate.plugin import RECORDING, write_plugin
    from opentabs_py.plugins.scaffold import whole_or_nothing
    from opentabs_py.recording.files import write_recording

    made = write_plugin(site, name, language)
    with whole_or_nothing(directory):
        _create(name, directory, language, files=made.files, dropped=made.dropped)
        write_recording(made.recording, directory / "tests" / RECORDING, version=__version__)
    table = new_table("tool", "", "request", "tested by")
    for tool in site.tools:
        count = sum(call.tool == tool.name for call in made.calls)
        table.add_row(
            escape(mcp_name(name, tool.name)),
            "[dim]reads[/]" if tool.is_read else "[yellow]writes[/]",
            escape(tool.source),
            quantity(count, "call"),
        )
    err.print()
    err.print(table)
    for what in site.auth.missing:
        warn(
            f"The recording does not show where the value of {what} comes from. "
            f"Set it in src/api.{language}."
        )


def _create(
    name: str,
    directory: Path,
    language: "Language",
    *,
    files: Mapping[str, str] | None = None,
    dropped: Collection[str] = (),
) -> None:
    from opentabs_py.cli.building import show_toolchain
    from opentabs_py.cli.signals import exit_at_signals
    from opentabs_py.cli.terminal import err
    from opentabs_py.errors import BuildError
    from opentabs_py.plugins.package_links import link_packages
    from opentabs_py.plugins.scaffold import scaffold

    exit_at_signals()  # so that half a plugin is removed
    created = scaffold(name, directory, language=language, files=files or {}, dropped=dropped)
    err.print(f"[bold green]✓[/] {escape(str(directory))}/", soft_wrap=True)
    for file in created:
        err.print(f"    [dim]{escape(str(file))}[/]", soft_wrap=True)
    try:
        link_packages(directory, show_toolchain().packages)
    except BuildError as error:
        err.print(f"\n[yellow]Cannot build it here yet.[/] {escape(str(error))}", soft_wrap=True)


def _say_next(directory: Path, steps: str) -> None:
    from opentabs_py.cli.terminal import err

    err.print(
        f"\nNext:\n  cd {escape(quote(str(directory)))}\n  {escape(steps)}\n  opentabs test",
        soft_wrap=True,
    )
