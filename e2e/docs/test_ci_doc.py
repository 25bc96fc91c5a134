"""What docs/ci.md shows works as shown, as far as it can be tried without GitHub."""

import json
import os
import re
import shlex
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from e2e.documents import ROOT, read_blocks, run
from e2e.sites.drifting_site import DriftingSite, limited, renamed, write_tracker_plugin
from e2e.sites.test_recordings import record, serving
from e2e.sites.test_verify import USE
from opentabs_py.runner.report_page import read_report

[WORKFLOW, SHARDS, NIGHTLY, DOCKERFILE] = read_blocks((ROOT / "docs" / "ci.md").read_text())
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
    [job] = yaml.safe_load(WORKFLOW.text)["jobs"].values()
    steps = [each["run"] for each in job["steps"] if each.get("run", "").startswith("opentabs")]
    [kept] = re.findall(r"^ +path: (.*)/$", WORKFLOW.text, flags=re.MULTILINE)

    done = [run(shlex.split(step), chat) for step in steps]

    assert [step.split()[1] for step in steps] == ["browser", "test"]
    assert [each.returncode for each in done] == [0, 0], done[-1].stdout + done[-1].stderr
    assert "1 passed" in done[-1].stdout
    assert "warning" not in done[-1].stdout
    assert {each.name for each in (chat / kept).iterdir()} == {"junit.xml", "report.html"}


def test_the_parts_of_several_machines_become_one_report(chat: Path) -> None:
    tests = chat / "tests"
    (tests / "test_more.py").write_text("def test_more(): ...\n")
    jobs = yaml.safe_load(SHARDS.text)["jobs"]
    commands = {
        name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()
    }
    [test] = [each for each in commands["test"] if each.startswith("opentabs test")]
    [merge] = [each for each in commands["report"] if each.startswith("opentabs")]

    for part in jobs["test"]["strategy"]["matrix"]["part"]:
        done = run(shlex.split(test.replace("${{ matrix.part }}", str(part))), chat)
        assert done.returncode == 0, done.stdout + done.stderr
    merged = run(["bash", "-c", merge], chat)

    (tests / "test_more.py").unlink()
    assert merged.stderr == "Wrote report.html: 2 runs, 2 tests\n"
    report = read_report(chat / "report.html")
    assert [each["state"] for each in report.tests] == ["passed", "passed"]
    assert report.missing == []


def test_the_dockerfile_is_one_and_its_command_passes(chat: Path) -> None:
    lines = DOCKERFILE.text.replace("\\\n", "").splitlines()
    instructions = [line.split(maxsplit=1) for line in lines if line]
    command = json.loads(dict(instructions)["CMD"])

    done = run(command, chat)

    assert {name for name, _ in instructions} == INSTRUCTIONS
    assert instructions[0][0] == "FROM"
    assert done.returncode == 0, done.stdout + done.stderr


GH = """#!/bin/sh
echo "$@" >> gh.txt
case "$*" in "issue list"*) cat open.txt;; esac
"""


def night(directory: Path) -> list[str]:
    """Run the steps of the nightly workflow as GitHub does; return the commands given to `gh`."""
    steps = yaml.safe_load(NIGHTLY.text)["jobs"]["verify"]["steps"]
    verify, tell = (step for step in steps if "name" in step)
    summary, env = directory / "summary.md", directory / "env"
    for file in (summary, env, directory / "gh.txt"):
        file.write_text("")
    github = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ENV": str(env)}
    path = f"{directory / 'bin'}:{os.environ['PATH']}"
    script = ["bash", "-e", "-o", "pipefail", "-c"]

    done = run([*script, verify["run"]], directory, **github)

    assert done.returncode == 0, done.stderr
    assert "tracker_list" in summary.read_text()
    assert tell["if"] == "env.DRIFT == '1'"
    if env.read_text() == "DRIFT=1\n":
        told = run([*script, tell["run"]], directory, PATH=path)
        assert told.returncode == 0, told.stderr
    return (directory / "gh.txt").read_text().splitlines()


def test_the_nightly_workflow_opens_one_issue_when_the_site_has_changed(tmp_path: Path) -> None:
    plugin, site = write_tracker_plugin(tmp_path / "tracker"), DriftingSite()
    (plugin / "use.py").write_text(USE)
    (plugin / "bin").mkdir()
    gh = plugin / "bin" / "gh"
    gh.write_text(GH)
    gh.chmod(0o755)
    with serving(site) as url:
        made = record(plugin, url, "--script", "use.py", "--out", "tests/tracker.har")
        assert made.returncode == 0, made.stderr

        assert night(plugin) == []
        site.mutation = limited(429)
        assert night(plugin) == []
        site.mutation = renamed("title", "subject")
        (plugin / "open.txt").write_text("")
        listed, created = night(plugin)
        (plugin / "open.txt").write_text("7\n")
        _, commented = night(plugin)

    assert listed.startswith("issue list")
    assert created == "issue create --title The site has changed --body-file drift.md"
    assert commented == "issue comment 7 --body-file drift.md"
    assert "title is now called subject" in (plugin / "drift.md").read_text()
