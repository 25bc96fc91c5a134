"""Check the types of a plugin's source with the TypeScript installed for it.

esbuild only strips types. Authors install TypeScript themselves; the builder has none.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import anyio

from opentabs_py.core.plugins.authoring import SourceProblem

SETTINGS = "tsconfig.json"
_PROBLEM = re.compile(r"(?:(?P<file>.+)\((?P<line>\d+),\d+\): )?error (?P<code>TS\d+): (?P<why>.*)")


def find_tsc(directory: Path) -> Path | None:
    """Return the TypeScript compiler of a plugin that has a `tsconfig.json`.

    Searches the `node_modules` of the plugin, whose path is absolute, and of its parent
    directories; not PATH, where it may have any version.
    """
    if not (directory / SETTINGS).is_file():
        return None
    inside = [each / "node_modules" / ".bin" for each in (directory, *directory.parents)]
    found = shutil.which("tsc", path=os.pathsep.join(map(str, inside)))
    return None if found is None else Path(found)


async def check_types(directory: Path, tsc: Path, node: Path) -> list[SourceProblem]:
    """Return the compiler's errors about a plugin's types."""
    path = os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])
    done = await anyio.run_process(
        [str(tsc), "--noEmit", "--pretty", "false", "--project", SETTINGS],
        cwd=directory,
        env={**os.environ, "PATH": path},
        stderr=subprocess.STDOUT,
        check=False,
    )
    output = done.stdout.decode(errors="replace")
    problems = [
        _problem(found) for line in output.splitlines() if (found := _PROBLEM.fullmatch(line))
    ]
    if done.returncode != 0 and not problems:
        why = f"cannot be checked: {tsc} exited with {done.returncode}: {output.strip()}"
        return [SourceProblem(SETTINGS, why=why)]
    return problems


def _problem(found: re.Match[str]) -> SourceProblem:
    line = None if found["line"] is None else int(found["line"])
    why = f"{found['why']} ({found['code']})"
    return SourceProblem(found["file"] or SETTINGS, line, why=why)
