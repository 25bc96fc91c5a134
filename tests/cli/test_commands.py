"""The `--help` of each command, and what all commands say of an argument too many."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from opentabs_py.cli.app import create_app
from tests.cli.in_process import opentabs_here


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command and its context, by name."""
    app = get_command(create_app(None))
    root = app.make_context("opentabs", [], resilient_parsing=True)
    yield "", root
    yield from _below(app, root)


def _below(group: Any, context: Any) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        own = type(context)(command, parent=context, info_name=name)
        yield own.command_path, own
        if isinstance(command, TyperGroup):
            yield from _below(command, own)


ALL = dict(commands())


@pytest.mark.parametrize("name", ALL)
def test_help_shows_no_type_where_it_says_nothing(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ALL[name].command.get_help(ALL[name])
    shown = capsys.readouterr().out
    assert "Usage: opentabs" in shown
    for useless in ("<bool>", "<str>", "<path>", "<list["):
        assert useless not in shown
    assert "[[" not in shown  # an optional argument is in brackets already


@pytest.mark.parametrize("name", ALL)
def test_a_description_wraps_where_the_terminal_ends(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise each line of the source would wrap into a second, short one.
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 1000)
    ALL[name].command.get_help(ALL[name])
    description = capsys.readouterr().out.partition("╭")[0]
    paragraphs = [each for each in description.split("\n") if each.strip()]
    assert len(paragraphs) == ALL[name].command.help.count("\n\n") + 2


@pytest.mark.parametrize("name", ALL)
def test_each_example_is_a_paragraph_of_its_own(name: str) -> None:
    # Otherwise the help joins them to one command.
    assert "[/]\n[dim]" not in ALL[name].command.help


def test_every_command_is_in_a_group_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    ALL[""].command.get_help(ALL[""])
    shown = capsys.readouterr().out
    assert "─ First steps ─" in shown
    assert "─ Commands ─" not in shown  # where Typer lists those without a group
    assert all(f"\n│ {name} " in shown for name in ALL[""].command.commands)


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("serve chat", "Did you mean --plugin chat?"),
        ("call chat_send {} chat", "Did you mean --plugin chat?"),
        ("start tools.py", "Did you mean --tools tools.py?"),
        ("stop work", "Did you mean --name work?"),
        ("tools send", "Did you mean --search send?"),
        ("serve nowhere", None),
        (f"serve {'x' * 5000}", None),  # too long for a path
        ("dev chat chat", None),
    ],
)
def test_an_argument_too_many_is_refused_with_the_option_that_it_may_be_for(
    command: str, instead: str | None, tmp_path: Path
) -> None:
    (tmp_path / "chat").mkdir()
    done = opentabs_here(*command.split(), cwd=tmp_path)
    assert done.returncode == 2
    shown = " ".join(done.stderr.split())
    assert "Got unexpected extra argument" in shown
    assert f"({command.rsplit(maxsplit=1)[-1][:40]}" in shown
    assert (instead or "") in shown
    assert ("Did you mean" in shown) is (instead is not None)
