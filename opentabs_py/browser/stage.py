"""The copy of the extension that one browser loads.

Pages' CSP forbids `eval` and inline scripts, so plugin code reaches pages only as files of
the extension. A staged copy holds the extension, the page runtime, where the server is, and
each plugin's adapter and pre-script, named by the hash of their content: Chrome serves a file
that was written after load at once.
"""

import base64
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opentabs_py.assets import extension_dir, runtime_file

_PREFIX = "opentabs-"
_PREFIXES = (_PREFIX, "playwright-pytest-")  # pytest-playwright leaves its own behind when killed
_MARK = "owner.pid"


@dataclass(frozen=True, slots=True)
class StagedExtension:
    """A staged copy of the extension.

    Attributes:
        path: What `--load-extension` takes.
        origin: The Origin of its requests, `chrome-extension://ID`.
        secret: What it presents to the server.
    """

    path: Path
    origin: str
    secret: str

    def add_adapter(self, name: str, script: bytes) -> str:
        """Put a plugin's adapter in; give its path within the extension."""
        return self._add("adapters", name, script)

    def add_pre_script(self, name: str, script: bytes) -> str:
        """Put a plugin's pre-script in; give its path within the extension."""
        return self._add("pre-scripts", name, script)

    def _add(self, folder: str, name: str, script: bytes) -> str:
        digest = hashlib.sha256(script).hexdigest()[:16]
        file = f"{folder}/{name}-{digest}.js"
        target = self.path / file
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            partial = target.with_suffix(".partial")
            partial.write_bytes(script)
            partial.replace(target)
        return file


def stage_extension(
    into: Path,
    *,
    port: int,
    host: str = "127.0.0.1",
    secret: str | None = None,
    sites: Sequence[str] | None = None,
    relay_script: bytes = b"",
) -> StagedExtension:
    """Write a copy of the extension that connects to a server on this machine.

    Args:
        into: The directory; files of an older copy in it are replaced.
        port: Where the server listens.
        host: The same, an IP address as URLs have it.
        secret: What the extension presents; a fresh one when None.
        sites: Match patterns it may touch; None keeps the manifest's `<all_urls>`.
        relay_script: Runs in the relay's world behind its channel, where tests plant faults.
    """
    secret = secret or secrets.token_hex(32)
    shutil.copytree(extension_dir(), into, dirs_exist_ok=True)
    shutil.copyfile(runtime_file(), into / "content" / "runtime.js")
    if relay_script:
        with (into / "content" / "channel.js").open("ab") as channel:
            channel.write(b"\n" + relay_script)
    config = into / "config.json"
    config.touch(mode=0o600)
    config.write_text(json.dumps({"server": f"{host}:{port}", "secret": secret}))
    manifest_file = into / "manifest.json"
    manifest = json.loads(manifest_file.read_text())
    if sites is not None:
        manifest["host_permissions"] = sorted(set(sites))
        manifest_file.write_text(json.dumps(manifest, indent=2))
    return StagedExtension(into, f"chrome-extension://{_extension_id(manifest['key'])}", secret)


def kept_secret(file: Path) -> str:
    """Give the secret that a file keeps; the first time, one is made."""
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        secret = secrets.token_hex(32)
        file.touch(mode=0o600)
        file.write_text(secret)
        return secret


def _extension_id(key: str) -> str:
    """Give the id that Chrome makes of a manifest's `key`: its hash, digits as a to p."""
    digest = hashlib.sha256(base64.b64decode(key)).hexdigest()[:32]
    return "".join(chr(ord("a") + int(digit, 16)) for digit in digest)


@contextmanager
def temporary_dir() -> Generator[Path]:
    """A directory of this process, removed at the end; those of dead processes go too."""
    _remove_abandoned(Path(tempfile.gettempdir()))
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    own_directory(path)
    try:
        yield path
    finally:
        # A browser that is just going may still write into its profile.
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            shutil.rmtree(path, ignore_errors=True)


def own_directory(path: Path) -> None:
    """Mark a temporary directory as this process's: when that was killed, others remove it."""
    (path / _MARK).write_text(str(os.getpid()))


def _remove_abandoned(parent: Path) -> None:
    for mark in (mark for prefix in _PREFIXES for mark in parent.glob(f"{prefix}*/{_MARK}")):
        try:
            owner = int(mark.read_text())
        except (OSError, ValueError):
            continue  # being written or removed just now
        if not _is_alive(owner):
            shutil.rmtree(mark.parent, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    # A killed process stays as a zombie where nobody collects it, as in many a container.
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return True  # no /proc here, or it has just gone
    return state != b"Z"
