"""`opentabs review`, where its answer cannot be kept."""

import subprocess
from pathlib import Path

from opentabs_py.demo import demo_plugin_dir
from tests.cli.test_authoring import ENVIRONMENT


def test_an_approval_on_a_full_disk_says_so_in_a_sentence(tmp_path: Path) -> None:
    command = 'ulimit -f 0; exec opentabs review "$1" --approve'  # as a full disk
    run = subprocess.run(
        ["sh", "-c", command, "sh", str(demo_plugin_dir())],
        env={**ENVIRONMENT, "XDG_DATA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    where = tmp_path / "opentabs" / "reviews" / "demo" / "adapter.iife.js"
    assert run.stderr == (
        f"error: Cannot record the review in {where}: File too large. Free some space there, or "
        "make it writable.\n"
    )
    assert run.returncode == 3
