"""Groups of options become options of a command, and come back as one object."""

from typing import Annotated

import pytest
import typer

from opentabs_py.cli.command_classes import App
from opentabs_py.cli.option_groups import OptionGroup, grouped


class Color(OptionGroup):
    """One group."""

    panel = "Color"

    red: Annotated[int, typer.Option(metavar="N")] = 3
    names_: Annotated[list[str] | None, typer.Option("--name")] = None


class Shade(Color):
    """A group with the options of another, and more."""

    dark: Annotated[bool, typer.Option("--dark")] = False


def run(*arguments: str) -> list[tuple[str, dict[str, object], bool]]:
    """Return the command's arguments, if it is called."""
    seen: list[tuple[str, dict[str, object], bool]] = []

    @grouped
    def paint(
        what: Annotated[str, typer.Argument()],
        shade: Shade,
        json_: Annotated[bool, typer.Option("--json")] = False,
    ) -> None:
        """Paint something."""
        seen.append((what, vars(shade), json_))

    app = App()
    app.command()(paint)
    with pytest.raises(SystemExit) as ended:
        app(arguments)
    assert not ended.value.code
    return seen


def test_a_command_receives_its_groups_filled() -> None:
    given = run("wall", "--red", "5", "--name", "a", "--name", "b", "--dark", "--json")
    assert given == [("wall", {"red": 5, "names_": ["a", "b"], "dark": True}, True)]


def test_options_that_are_not_given_have_the_defaults_of_their_fields() -> None:
    assert run("wall") == [("wall", {"red": 3, "names_": None, "dark": False}, False)]


def test_options_are_listed_under_the_heading_of_their_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not run("--help")
    own, of_group = capsys.readouterr().out.split("─ Color ─")
    assert "--json" in own
    assert "--red" not in own
    assert all(name in of_group for name in ("--red", "--name", "--dark"))


def test_a_group_made_by_hand_has_the_defaults_of_its_fields() -> None:
    shade = Shade(red=4)
    assert (shade.red, shade.names_, shade.dark) == (4, None, False)
    assert shade.is_given
    assert not Shade(dark=False).is_given
