"""The copy of the extension that one browser loads.

Pages' CSP forbids `eval` and inline scripts, so plugin code reaches pages only as files of
the extension. A staged copy holds the extension, the page runtime, where the server is, and
each plugin's adapter and pre-script, named by the hash of their content: Chrome serves a file
that was written after load at once.
"""

import base64
import hashlib
import json
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opentabs_py.assets import extension_dir, runtime_file


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
