"""`opentabs review`: look at an installed plugin before its tools may run."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from opentabs_py.cli.exit_codes import TOOL_FAILED
from opentabs_py.cli.options import Json
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.config.settings import Settings
    from opentabs_py.consent.reviews import Approval, Reviews
    from opentabs_py.core.consent import Standing
    from opentabs_py.plugins.plugin import Plugin

MOST_DIFF_LINES = 400  # --source shows all


def review(
    plugin: Annotated[
        str | None,
        typer.Argument(
            metavar="PLUGIN|DIR",
            help="The plugin's name or its directory; without it, the plugins' state is listed.",
        ),
    ] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Approve this build without asking.")
    ] = False,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Withdraw the approval; the tools are turned off.")
    ] = False,
    source: Annotated[
        bool,
        typer.Option("--source", help="Print the code that would run in your pages, in full."),
    ] = False,
    json_: Json = False,
) -> None:
    """Review an installed plugin, and approve the build that is there now.

    Shows what the plugin is for, on which sites it runs, its tools and what each may do, and what
    has changed since the version that you approved. Tools of a plugin that has not been reviewed,
    or has changed since, are off, and none of its code runs in your pages.

    Plugins that you name when you start a server, with --plugin for example, need no review. A
    server that is running notices an approval at once.

    Exit codes: 0 approved, or listed; 1 not approved; 2 usage error; 3 cannot record it.
    """
    from opentabs_py.config.paths import data_dir
    from opentabs_py.config.settings import load_settings
    from opentabs_py.consent.reviews import Reviews

    if approve and revoke:
        raise ConfigError("--approve and --revoke cannot be combined.")
    reviews, settings = Reviews(data_dir() / "reviews"), load_settings()
    if plugin is None:
        if approve or revoke or source:
            raise ConfigError("Name the plugin. `opentabs review` without a name lists them.")
        _list(settings, reviews, as_json=json_)
        return
    if revoke and _find(plugin, settings) is None:
        _revoke(reviews, plugin)
        return
    found = _load(plugin, settings)
    if revoke:
        _revoke(reviews, found.manifest.name)
        return
    _review(found, reviews, settings, approve=approve, source=source, as_json=json_)


def _revoke(reviews: "Reviews", name: str) -> None:
    from opentabs_py.cli.terminal import err

    if not reviews.revoke(name):
        raise ConfigError(f"The plugin {name!r} was not approved.")
    err.print(f"The approval of {escape(name)} is withdrawn; its tools are off.")


def _review(
    plugin: "Plugin",
    reviews: "Reviews",
    settings: "Settings",
    *,
    approve: bool,
    source: bool,
    as_json: bool,
) -> None:
    from opentabs_py.cli.prompts import is_someone_there
    from opentabs_py.cli.terminal import err, write_json
    from opentabs_py.consent.reviews import find_standing
    from opentabs_py.core.text import one_line
    from opentabs_py.plugins.build_content import content_digest, content_files

    name, version = plugin.manifest.name, plugin.manifest.version
    digest, files = content_digest(plugin), content_files(plugin)
    approvals = reviews.approvals()
    standing = find_standing(approvals, name, digest)
    if as_json and not approve:
        write_json(_as_json(plugin, standing, approvals.get(name), digest))
    elif not as_json:
        _show(plugin, standing, approvals.get(name), settings)
        if standing == "changed":
            _show_changes(reviews.approved_files(name), files)
        if source:
            _show_source(files)
    if standing == "reviewed" and not approve:
        return
    if not approve and not as_json and is_someone_there():
        question = f"\nApprove {name} {one_line(version)}?"
        approve = typer.confirm(question, default=False, err=True)
    if not approve:
        if not as_json:
            err.print(f"Not approved. To approve: opentabs review {escape(name)} --approve")
        raise typer.Exit(TOOL_FAILED)
    reviews.approve(name, version, digest, files)
    if as_json:
        write_json(_as_json(plugin, "reviewed", reviews.approvals().get(name), digest))
    else:
        err.print(f"[green]✓[/] {escape(name)} {escape(version)} is approved, until it changes.")


def _find(wanted: str, settings: "Settings") -> Path | None:
    """Return the directory of a plugin that is named by its name or its directory."""
    from opentabs_py.plugins.folders import load_configured
    from opentabs_py.plugins.load import is_plugin

    if is_plugin(Path(wanted)):
        return Path(wanted)
    loaded, _ = load_configured(settings)
    return next((each.directory for each in loaded if each.manifest.name == wanted), None)


def _load(wanted: str, settings: "Settings") -> "Plugin":
    from opentabs_py.plugins.load import load_plugin

    directory = _find(wanted, settings)
    if directory is None:
        raise ConfigError(
            f"There is no plugin {wanted!r} in your settings, and no directory of that name. "
            "`opentabs review` lists the plugins."
        )
    return load_plugin(directory)


def _list(settings: "Settings", reviews: "Reviews", *, as_json: bool) -> None:
    from opentabs_py.cli.plugin_warnings import print_skipped
    from opentabs_py.cli.terminal import err, new_table, out, write_json
    from opentabs_py.consent.reviews import find_standing
    from opentabs_py.plugins.build_content import content_digest
    from opentabs_py.plugins.folders import load_configured
    from opentabs_py.session.plugins.standings import exempting

    loaded, skipped = load_configured(settings)
    approvals, find_exempt = reviews.approvals(), exempting(settings)
    rows: list[tuple[Plugin, str, Approval | None]] = []
    for each in loaded:
        name = each.manifest.name
        standing: str = find_standing(approvals, name, content_digest(each))
        if find_exempt(each.directory) is not None:
            standing = "not needed"
        rows.append((each, standing, approvals.get(name)))
    if as_json:
        write_json([_as_json(each, what, approval) for each, what, approval in rows])
        return
    print_skipped(skipped)
    if not rows:
        err.print("No plugins are installed: your settings name none.")
        return
    table = new_table("plugin", "version", "review", "directory")
    colours = {"unreviewed": "red", "changed": "yellow", "reviewed": "green"}
    for each, what, _approval in rows:
        colour = colours.get(what, "dim")
        manifest = each.manifest
        table.add_row(
            f"[cyan]{escape(manifest.name)}[/]",
            escape(manifest.version),
            f"[{colour}]{what}[/]",
            f"[dim]{escape(str(each.directory))}[/]",
        )
    out.print(table)


def _as_json(
    plugin: "Plugin", standing: str, approval: "Approval | None", digest: str | None = None
) -> dict[str, Any]:
    manifest = plugin.manifest
    return {
        "name": manifest.name,
        "version": manifest.version,
        "directory": str(plugin.directory),
        "standing": standing,
        "digest": digest,
        "approved": None if approval is None else approval.model_dump(mode="json"),
        "urlPatterns": manifest.url_patterns,
        "tools": [each.name for each in manifest.tools],
    }


def _show(
    plugin: "Plugin",
    standing: "Standing",
    approval: "Approval | None",
    settings: "Settings",
) -> None:
    from rich.table import Table

    from opentabs_py.calling.plugin_listing import plugin_tool_listing
    from opentabs_py.cli.terminal import new_table, out
    from opentabs_py.core.consent import decide
    from opentabs_py.core.text import one_line

    manifest = plugin.manifest
    out.print(
        f"[bold]{escape(one_line(manifest.display_name))}[/] "
        f"[dim]{escape(manifest.name)} {escape(one_line(manifest.version))}[/]\n"
        f"{escape(one_line(manifest.description))}\n",
        soft_wrap=True,
    )
    about = Table.grid(padding=(0, 2))
    about.add_row("[dim]runs on[/]", escape("\n".join(manifest.url_patterns) or "no site yet"))
    about.add_row("[dim]can[/]", "do there whatever you can do, with your session")
    if manifest.pre_script_file is not None:
        about.add_row("[dim]also[/]", "runs a script before the page's own")
    about.add_row("[dim]adapter[/]", escape(str(plugin.directory / plugin.adapter.name)))
    state = {
        "reviewed": "this build is approved",
        "changed": "[yellow]it has changed since the approved version[/]",
    }.get(standing, "[red]never reviewed[/]")
    if approval is not None and standing == "changed":
        state += f" [dim]({escape(approval.version)})[/]"
    about.add_row("[dim]review[/]", state)
    out.print(about)
    table = new_table("tool", "does", "once approved")
    for tool in manifest.tools:
        listing = plugin_tool_listing(manifest, tool)
        permission = decide(settings.permissions, listing.gated("reviewed")).permission
        words = {"auto": "[green]runs[/]", "ask": "[yellow]asks[/]", "off": "[red]off[/]"}
        table.add_row(
            f"[cyan]{escape(tool.name)}[/]",
            escape(tool.summary or tool.description),  # whatever it is, it stays in its column
            words[permission] + (" [dim](reads only)[/]" if listing.is_read_only else ""),
        )
    out.print()
    out.print(table)


def _show_changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    """Show what has changed since the approved build."""
    from opentabs_py.cli.terminal import out
    from opentabs_py.plugins.build_content import find_changes

    lines = find_changes(before, after)
    out.print()
    for line in lines[:MOST_DIFF_LINES]:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
        out.print(f"[{colour}]{escape(line)}[/]", soft_wrap=True)
    if len(lines) > MOST_DIFF_LINES:
        more = len(lines) - MOST_DIFF_LINES
        out.print(f"[dim]… {more:,} more lines; --source prints the whole files[/]")


def _show_source(files: Mapping[str, bytes]) -> None:
    from opentabs_py.cli.terminal import out
    from opentabs_py.plugins.build_content import source_lines

    for name, content in files.items():
        out.print(f"\n[bold]{escape(name)}[/]")
        for line in source_lines(content):
            out.print(escape(line), soft_wrap=True)
