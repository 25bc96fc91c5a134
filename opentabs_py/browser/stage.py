"""The copy of the extension that one browser loads.

Pages' CSP forbids `eval` and inline scripts, so plugin code reaches pages only as files of
the extension. A staged copy holds the extension, the page runtime, where the server is, and
each plugin's adapter and pre-script, named by the hash of their content: Chrome serves a file
that was written after load at once.
"""

import base64
import contextlib
import hashlib
import json
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opentabs_py.assets import extension_dir, runtime_file

_MANIFEST: Final = "manifest.json"


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

    def lacks(self, sites: Sequence[str]) -> bool:
        """Return whether the extension may not touch all of these sites, given as patterns."""
        allowed = self._manifest()["host_permissions"]
        return "<all_urls>" not in allowed and not set(sites) <= set(allowed)

    def allow(self, sites: Sequence[str]) -> None:
        """Let the extension touch these sites; it reloads itself when it is sent a plugin there."""
        manifest = self._manifest()
        manifest["host_permissions"] = sorted(set(sites))
        _write_whole(self.path / _MANIFEST, json.dumps(manifest, indent=2).encode())

    def _manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads((self.path / _MANIFEST).read_bytes())
        return manifest

    def _add(self, folder: str, name: str, script: bytes) -> str:
        digest = hashlib.sha256(script).hexdigest()[:16]
        file = f"{folder}/{name}-{digest}.js"
        target = self.path / file
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            _write_whole(target, script)
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

    A browser that has loaded an older copy reads each file either as it was or as it is now.

    Args:
        into: The directory; files of an older copy in it are replaced.
        port: Where the server listens.
        host: The same, an IP address as URLs have it.
        secret: What the extension presents; a fresh one when None.
        sites: Match patterns it may touch; None keeps the manifest's `<all_urls>`.
        relay_script: Runs in the relay's world behind its channel, where tests plant faults.
    """
    secret = secret or secrets.token_hex(32)
    shutil.copytree(extension_dir(), into, dirs_exist_ok=True, copy_function=_copy_whole)
    _copy_whole(runtime_file(), into / "content" / "runtime.js")
    if relay_script:
        channel = into / "content" / "channel.js"
        _write_whole(channel, channel.read_bytes() + b"\n" + relay_script)
    config = {"server": f"{host}:{port}", "secret": secret}
    _write_whole(into / "config.json", json.dumps(config).encode(), mode=0o600)
    manifest_file = into / _MANIFEST
    manifest = json.loads(manifest_file.read_text())
    if sites is not None:
        manifest["host_permissions"] = sorted(set(sites))
        _write_whole(manifest_file, json.dumps(manifest, indent=2).encode())
    return StagedExtension(into, f"chrome-extension://{_extension_id(manifest['key'])}", secret)


def kept_secret(file: Path) -> str:
    """Give the secret that a file keeps; the first time, one is made."""
    with contextlib.suppress(FileNotFoundError):
        if kept := file.read_text().strip():
            return kept
    secret = secrets.token_hex(32)
    _write_whole(file, secret.encode(), mode=0o600)
    return secret


def _copy_whole(source: str | Path, target: str | Path) -> None:
    _write_whole(Path(target), Path(source).read_bytes())


def _write_whole(file: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that whoever reads it meanwhile finds all of the old or all of the new."""
    partial = file.with_name(f"{file.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.touch(mode=mode, exist_ok=False)
        partial.write_bytes(content)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _extension_id(key: str) -> str:
    """Give the id that Chrome makes of a manifest's `key`: its hash, digits as a to p."""
    digest = hashlib.sha256(base64.b64decode(key)).hexdigest()[:32]
    return "".join(chr(ord("a") + int(digit, 16)) for digit in digest)
