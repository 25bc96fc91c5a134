"""Third-party Node programs: what `clients/` installs, and the Node to run it with."""

import sys
from pathlib import Path

CLIENTS = Path(__file__).parents[1] / "clients"


def node_command(script: str) -> list[str]:
    """Return the command that runs a script in `clients/`, or a program installed there."""
    programs = CLIENTS / "node_modules" / ".bin"
    if not programs.is_dir():
        raise FileNotFoundError(f"{programs} is not there. Run `make clients`.")
    path = CLIENTS / script if script.endswith(".mjs") else programs / script
    return [str(Path(sys.executable).with_name("node")), str(path)]
