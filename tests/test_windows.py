"""What would keep the package from starting on Windows, where no test runs."""

import subprocess
import sys
from pathlib import Path

# Loads the modules a second time, with what the standard library has on Windows.
CODE = """
import importlib, os, pkgutil, signal, sys
from pathlib import Path
import opentabs_py

every = pkgutil.walk_packages(opentabs_py.__path__, "opentabs_py.")
names = [each.name for each in every if not each.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
for name in [*sys.modules]:
    if name.partition(".")[0] == "opentabs_py":
        del sys.modules[name]
sys.platform = "win32"
sys.modules |= dict.fromkeys(["fcntl", "grp", "pwd", "resource", "termios", "uvloop"])
lacking = {
    os: "O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY geteuid killpg",
    signal: "SIGHUP SIGKILL",
}
for module, missing in lacking.items():
    for name in missing.split():
        delattr(module, name)
os.O_BINARY = 0
for name in names:
    importlib.import_module(name)

from opentabs_py.errors import PluginError
from opentabs_py.plugins.files import read_within

here = Path.cwd() / "plugin"
assert read_within(here, "dist/tools.json", limit=2) == b"{}"
try:
    read_within(here, "dist/secret", limit=9)
except PluginError as error:
    print(error)
"""


def test_every_module_can_be_loaded_and_plugins_are_read_without_what_windows_lacks(
    tmp_path: Path,
) -> None:
    dist = tmp_path / "plugin" / "dist"
    dist.mkdir(parents=True)
    (dist / "tools.json").write_text("{}")
    (tmp_path / "secret").write_text("key")
    (dist / "secret").symlink_to(tmp_path / "secret")
    run = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    assert "is a link out of the plugin" in run.stdout
