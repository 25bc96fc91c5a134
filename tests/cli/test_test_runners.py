"""The programs that run tests."""

import subprocess
from pathlib import Path

from opentabs_py.cli.test_runners import node_command


def test_tests_in_node_are_reported_alike_with_every_version_of_node(tmp_path: Path) -> None:
    (tmp_path / "it.test.js").write_text('require("node:test")("it holds", () => {});\n')

    command = node_command(["it.test.js"], "--test-isolation=none")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert "✔ it holds" in done.stdout
    assert command.index("spec") == command.index("--test-reporter") + 1
