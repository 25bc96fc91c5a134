"""What docs/ci.md shows works as it is shown, as far as that can be tried without GitHub."""

import json
import re
import shlex
from pathlib import Path

import pytest

from e2e.documents import ROOT, read_blocks, run

[WORKFLOW, DOCKERFILE] = read_blocks((ROOT / "docs" / "ci.md").read_text())
INSTRUCTIONS = {"FROM", "RUN", "ENV", "USER", "WORKDIR", "COPY", "CMD"}


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = tmp_path_factory.mktemp("ci")
    made = run(["opentabs", "new", "chat"], workspace)
    assert made.returncode == 0, made.stderr
    return workspace / "chat"


def test_the_workflow_is_the_one_that_a_new_plugin_has(chat: Path) -> None:
    assert (chat / ".github" / "workflows" / "test.yml").read_text() == WORKFLOW.text


def test_the_steps_of_the_workflow_pass_and_leave_what_it_uploads(chat: Path) -> None:
    folded = re.sub(r">-\n\s+(.*)\n\s+(--.*)", r"\1 \2", WORKFLOW.text)
    steps = re.findall(r"- run: (opentabs .*)", folded)
    [kept] = re.findall(r"^ +path: (.*)/$", WORKFLOW.text, flags=re.MULTILINE)

    done = [run(shlex.split(step), chat) for step in steps]

    assert [step.split()[1] for step in steps] == ["browser", "test"]
    assert [each.returncode for each in done] == [0, 0], done[-1].stdout + done[-1].stderr
    assert "1 passed" in done[-1].stdout
    assert "warning" not in done[-1].stdout
    assert [each.name for each in (chat / kept).iterdir()] == ["junit.xml"]


def test_the_dockerfile_is_one_and_its_command_passes(chat: Path) -> None:
    lines = DOCKERFILE.text.replace("\\\n", "").splitlines()
    instructions = [line.split(maxsplit=1) for line in lines if line]
    command = json.loads(dict(instructions)["CMD"])

    done = run(command, chat)

    assert {name for name, _ in instructions} == INSTRUCTIONS
    assert instructions[0][0] == "FROM"
    assert done.returncode == 0, done.stdout + done.stderr
