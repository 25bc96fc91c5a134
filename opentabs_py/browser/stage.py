"""The copy of the extension that one browser loads.

Pages' CSP forbids `eval` and inline scripts, so plugin code reaches pages only as files of
the extension. A staged copy contains the extension, the page runtime, the console's page for the
side panel, the server's address, and each plugin's adapter and pre-script, named by content hash:
Chrome immediately serves files written after the extension was loaded.
"""

import base64
import contextlib
import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from opentabs_py.config.assets import console_page_dirs, extension_dir, runtime_file
from opentabs_py.config.files import write_whole

_MANIFEST: Final = "manifest.json"
_CONFIG: Final = "config.json"
# Scripts of each plugin. Another server may use the same directory, and until the extension has
# received the newest one, it injects the one before.
_KEPT: Final = 3


class StagedScript(Protocol):
    """A script to add to an extension."""

    @property
    def digest(self) -> str:
        """The hash of its content, in hex."""
        ...

    def parts(self) -> Iterable[bytes]:
        """Return its content in parts; getting one may raise an error."""
        ...


@dataclass(frozen=True, slots=True)
class StagedExtension:
    """A staged copy of the extension.

    Attributes:
        path: The directory for `--load-extension`.
        origin: The Origin of its requests, `chrome-extension://ID`.
        secret: The secret that it sends to the server.
        server: The server's address in it, `HOST:PORT`.
        reloads: Whether it may reload itself for access to more sites. Without developer mode,
            which a user's own browser may lack, that would leave it disabled.
    """

    path: Path
    origin: str
    secret: str
    server: str
    reloads: bool = True

    def write_address(self) -> None:
        """Write the server's address, which the extension reads whenever it connects."""
        config = {"server": self.server, "secret": self.secret}
        write_whole(self.path / _CONFIG, json.dumps(config).encode(), mode=0o600)

    def read_address(self) -> str:
        """Return the address of the server that it connects to next; empty if it has none."""
        try:
            config: Any = json.loads((self.path / _CONFIG).read_bytes())
            return str(config["server"])
        except (OSError, ValueError, TypeError, KeyError):
            return ""

    def add_adapter(self, name: str, script: StagedScript) -> str:
        """Add a plugin's adapter; return its path within the extension.

        A script is read only if the extension does not have it yet. If reading it raises an error,
        the extension does not get it.
        """
        return self._add("adapters", name, script)

    def add_pre_script(self, name: str, script: StagedScript) -> str:
        """Add a plugin's pre-script, in the same way; return its path within the extension."""
        return self._add("pre-scripts", name, script)

    def lacks(self, sites: Sequence[str]) -> bool:
        """Return whether the extension lacks access that a reload would give it.

        Args:
            sites: The sites it needs, as match patterns.
        """
        if not self.reloads:
            return False
        allowed = self._manifest()["host_permissions"]
        return "<all_urls>" not in allowed and not set(sites) <= set(allowed)

    def allow(self, sites: Sequence[str]) -> None:
        """Limit the extension's access to these sites.

        A loaded extension reloads itself when it receives a plugin for a new site.
        """
        manifest = self._manifest()
        manifest["host_permissions"] = sorted(set(sites))
        write_whole(self.path / _MANIFEST, json.dumps(manifest, indent=2).encode())

    def permit(self, permission: str) -> None:
        """Add one of Chrome's permissions to the extension, before it is loaded."""
        manifest = self._manifest()
        manifest["permissions"] = sorted({*manifest["permissions"], permission})
        write_whole(self.path / _MANIFEST, json.dumps(manifest, indent=2).encode())

    def _manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads((self.path / _MANIFEST).read_bytes())
        return manifest

    def _add(self, folder: str, name: str, script: StagedScript) -> str:
        file = f"{folder}/{name}-{script.digest[:16]}.js"
        target = self.path / file
        if target.exists():
            target.touch()  # those used last are kept
        else:
            target.parent.mkdir(exist_ok=True)
            write_whole(target, script.parts())
            _remove_older(target.parent, name)
        return file


def stage_extension(
    into: Path,
    *,
    port: int,
    host: str = "127.0.0.1",
    secret: str | None = None,
    sites: Sequence[str] | None = None,
    relay_script: bytes = b"",
    reloads: bool = True,
) -> StagedExtension:
    """Write a copy of the extension that connects to a server on this machine.

    A browser that has loaded an older copy reads each file either in its old or its new version.

    Args:
        into: The directory; files of an older copy in it are replaced.
        port: The server's port.
        host: The server's host, an IP address in URL form.
        secret: The secret the extension sends; None for a new one.
        sites: Match patterns it may access; None keeps the manifest's `<all_urls>`.
        relay_script: Runs in the relay's world behind its channel, where tests plant faults.
        reloads: Whether it may reload itself for access to more sites.

    Raises:
        OSError: It cannot be written; the error names the file.
    """
    secret = secret or secrets.token_hex(32)
    _copy_all(extension_dir(), into)
    _copy_whole(runtime_file(), into / "content" / "runtime.js")
    for place, directory in console_page_dirs().items():
        _copy_all(directory, into / "panel" / "console" / place, but="*.html")
    if relay_script:
        channel = into / "content" / "channel.js"
        write_whole(channel, channel.read_bytes() + b"\n" + relay_script)
    key = json.loads((into / _MANIFEST).read_bytes())["key"]
    origin = f"chrome-extension://{_extension_id(key)}"
    staged = StagedExtension(into, origin, secret, f"{host}:{port}", reloads)
    staged.write_address()
    if sites is not None:
        staged.allow(sites)
    if not reloads:
        _stamp(into)
    return staged


def _stamp(directory: Path) -> None:
    """Make the content a part of the extension's version.

    A profile keeps the compiled service worker of an extension until its version changes.
    """
    manifest = json.loads((directory / _MANIFEST).read_bytes())
    scripts = sorted((directory / "background").rglob("*.js"))
    content = b"".join(script.read_bytes() for script in (*scripts, directory / "protocol.js"))
    number = int.from_bytes(hashlib.sha256(content).digest()[:2])  # each part has 16 bits
    manifest["version"] = f"{manifest['version']}.{number}"
    write_whole(directory / _MANIFEST, json.dumps(manifest, indent=2).encode())


def kept_secret(file: Path) -> str:
    """Return the secret stored in a file, creating it the first time."""
    with contextlib.suppress(FileNotFoundError):
        if kept := file.read_text().strip():
            return kept
    secret = secrets.token_hex(32)
    write_whole(file, secret.encode(), mode=0o600)
    return secret


def _remove_older(directory: Path, name: str) -> None:
    """Remove all but a plugin's latest scripts.

    A server that runs for weeks, or a directory that stays for years, would keep one of each build.
    """
    own = re.compile(rf"{re.escape(name)}-[0-9a-f]{{16}}\.js")
    scripts = [each for each in directory.iterdir() if own.fullmatch(each.name)]
    scripts.sort(key=lambda each: each.stat().st_mtime_ns)
    for each in scripts[:-_KEPT]:
        each.unlink(missing_ok=True)


def _copy_all(source: Path, into: Path, *, but: str = "") -> None:
    """Copy a directory until a file cannot be written; `shutil.copytree` would try all others."""
    into.mkdir(parents=True, exist_ok=True)
    for each in sorted(source.iterdir()):
        if each.is_dir():
            _copy_all(each, into / each.name, but=but)
        elif not (but and each.match(but)):
            _copy_whole(each, into / each.name)


def _copy_whole(source: Path, target: Path) -> None:
    write_whole(target, source.read_bytes())


def _extension_id(key: str) -> str:
    """Return the id Chrome derives from a manifest's `key`: its hash, with digits as a to p."""
    digest = hashlib.sha256(base64.b64decode(key)).hexdigest()[:32]
    return "".join(chr(ord("a") + int(digit, 16)) for digit in digest)
