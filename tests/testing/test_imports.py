"""What the kit imports, and when."""

import subprocess
import sys


def test_what_tests_import_does_not_load_what_the_server_needs() -> None:
    # It is imported while the browser starts, which takes as long; here it would delay the start.
    script = "import sys; from opentabs_py.testing import SyncOpenTabs, expect; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "playwright" in loaded
    assert loaded & {"hypothesis", "mcp", "starlette", "uvicorn"} == set()
