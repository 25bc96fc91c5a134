"""Runs Python as a user other than root, with or without permission for user namespaces."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

REPOSITORY = Path(__file__).parents[2]


async def run_as_user(
    code: str, *, namespaces: bool = True, env: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """Run code, and return its exit code, stdout and stderr.

    Root becomes user 1000 in a new user namespace, and still owns root's files.
    """
    command: Sequence[str] = [sys.executable, "-c", code]
    if os.geteuid() == 0 or not namespaces:
        forbid = "" if namespaces else "echo 0 > /proc/sys/user/max_user_namespaces && "
        command = [
            *("unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps"),
            *("sh", "-c", f'{forbid}exec "$@"', "sh", *command),
        ]
    with anyio.fail_after(60):
        done = await anyio.run_process(
            command, check=False, cwd=REPOSITORY, env={**os.environ, **(env or {})}
        )
    return done.returncode, done.stdout.decode(), done.stderr.decode()
