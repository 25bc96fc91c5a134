"""The installation commands in the docs and in a new plugin's workflow work today."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from e2e.documents import ENVIRONMENT, ROOT, read_blocks

WORKFLOW = "opentabs_py/plugins/templates/common/_github/workflows/test.yml.tmpl"
DOCUMENTS = ["README.md", "docs/plugins.md", "docs/testing.md", "docs/ci.md"]


def installs(document: str) -> list[str]:
    """Return the commands in a document that install this package."""
    text = (ROOT / document).read_text()
    blocks = [text] if document == WORKFLOW else [block.text for block in read_blocks(text)]
    return re.findall(r"pip install .*opentabs.*", "\n".join(blocks))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel where the docs expect it, and an empty environment."""
    directory = tmp_path_factory.mktemp("install")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir"]
    subprocess.run([*build, directory / "dist", ROOT], check=True, stdout=subprocess.DEVNULL)
    (directory / "vendor").symlink_to("dist")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory / "venv"], check=True)
    return directory


@pytest.fixture(scope="module")
def install(workspace: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs an installation command, once for all documents that contain it."""
    # `make test-wheel` shows whether the dependencies can be installed from an index.
    alone = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_FORCE_REINSTALL": "1"}
    into = {"PIP_PYTHON": str(workspace / "venv" / "bin" / "python"), "PIP_NO_COMPILE": "1"}

    @cache
    def install_(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=workspace,
            env={**ENVIRONMENT, **alone, **into},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return install_


@pytest.mark.parametrize("document", [*DOCUMENTS, WORKFLOW])
def test_what_is_installed_comes_from_no_index(
    workspace: Path, install: Callable[[str], subprocess.CompletedProcess[str]], document: str
) -> None:
    commands = installs(document)

    for command in commands:
        done = install(command)
        assert done.returncode == 0, done.stderr
        assert "Successfully installed opentabs-py" in done.stdout
        assert "does not provide the extra" not in done.stderr
    assert commands != []
    assert os.access(workspace / "venv" / "bin" / "opentabs", os.X_OK)
