"""The command-line application: all commands in one place."""

from typing import Annotated

import typer

from opentabs_py import __version__
from opentabs_py.cli import (
    analyze,
    audit,
    browser,
    build,
    call,
    config,
    demo,
    dev,
    doctor,
    fleet,
    inspect,
    login,
    logs,
    new,
    record,
    report,
    review,
    run_tests,
    serve,
    start,
    status,
    tools,
    trace,
    ui,
    verify,
    worker,
)

app = typer.Typer(
    name="opentabs",
    help=(
        "Run tools inside real web pages and serve them over MCP.\n\n"
        "Settings come from the command line, OPENTABS_* environment variables, "
        r"\[tool.opentabs] in pyproject.toml and your own config.toml; the first one wins."
        "\n\nExit codes: 0 success; 1 the tool or the build failed; 2 usage error; 3 the chain "
        "failed."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_show_locals=False,
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"opentabs {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


app.command("demo")(demo.demo)
app.command("new")(new.new)
app.command("dev")(dev.dev)
app.command("build")(build.build)
app.command("test", cls=run_tests.TestCommand, context_settings={"ignore_unknown_options": True})(
    run_tests.run_tests
)
app.command("record")(record.record)
app.command("verify")(verify.verify)
app.command("analyze")(analyze.analyze)
app.command("inspect")(inspect.inspect)
app.command("review")(review.review)
app.command("serve")(serve.serve)
app.command("start", cls=start.StartCommand)(start.start)
app.command("stop")(start.stop)
app.command("restart")(start.restart)
app.command("status")(status.status)
app.command("logs")(logs.logs)
app.command("audit")(audit.audit)
app.command("stats")(audit.stats)
app.command("ui")(ui.ui)
app.command("call")(call.call)
app.command("tools")(tools.tools)
app.command("config")(config.config)
app.command("doctor")(doctor.doctor)
app.command("login")(login.login)
app.command("worker")(worker.worker)
app.add_typer(fleet.app, name="fleet")
app.add_typer(login.profile_app, name="profile")
app.add_typer(trace.app, name="trace")
app.add_typer(report.app, name="report")
app.add_typer(browser.app, name="browser")
