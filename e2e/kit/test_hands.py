"""The hands in the kit's fixtures, called as by an agent, through the whole chain."""

from pathlib import Path

from e2e.kit.runs import prepare, run

HANDS = "[tool.opentabs]\nhands = true\n"


def test_hands_are_called_as_an_agent_calls_them(tmp_path: Path) -> None:
    (prepare(tmp_path, "hands") / "pyproject.toml").write_text(HANDS)

    ran = run(tmp_path)

    assert len(ran.cases) == 5, ran.output
    assert set(ran.outcomes.values()) == {"passed"}, ran.output


def test_without_the_setting_the_error_says_how_to_have_them(tmp_path: Path) -> None:
    prepare(tmp_path, "hands")

    ran = run(tmp_path, "-k", "filled_in")

    [case] = ran.cases.values()
    assert case.outcome == "failed"
    assert "Set hands = true under [tool.opentabs]" in case.text
