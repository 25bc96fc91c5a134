"""Build plugins from `src/` to `dist/`, with the builder in Node."""

import hashlib
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryFile
from time import perf_counter
from typing import IO, Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import JsonValue

from opentabs_py.config.files import write_whole
from opentabs_py.core.plugin_names import plugin_id
from opentabs_py.core.plugins.authoring import (
    BuildReport,
    SourceProblem,
    find_source_problems,
    find_source_warnings,
    tools_json,
)
from opentabs_py.core.plugins.file_names import ADAPTER, DIST, PACKAGE, PRE_SCRIPT, TOOLS
from opentabs_py.directories import exists
from opentabs_py.errors import BuildError
from opentabs_py.plugins.freshness import ENTRIES
from opentabs_py.plugins.icons import LucideIcons
from opentabs_py.plugins.package_links import link_packages
from opentabs_py.plugins.toolchain import Toolchain
from opentabs_py.plugins.type_check import check_types, find_tsc

PRE_SCRIPTS = ("src/pre-script.ts", "src/pre-script.js")
_ANSWER_LIMIT = 256 * 1024 * 1024  # bytes
_HASH_PLACEHOLDER = "opentabs:adapter-hash".ljust(64, "-")  # as in builder/bundle.js


@dataclass(frozen=True, slots=True)
class Built:
    """The result of a build.

    Attributes:
        directory: The plugin's directory.
        name: The plugin's id; empty if its `package.json` has no valid one.
        problems: What is wrong. If there are any, `dist/` is unchanged.
        warnings: What may be wrong.
        tools: The names of its tools.
        sizes: The size in bytes of each file in `dist/`, by name.
        changed: Whether `dist/` changed.
        seconds: How long it took.
    """

    directory: Path
    name: str
    problems: tuple[SourceProblem, ...]
    warnings: tuple[SourceProblem, ...] = ()
    tools: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    changed: bool = False
    seconds: float = 0.0


class Builder:
    """Builds plugins. Its process caches what it has read, so the next build is fast.

    Args:
        toolchain: What it builds with.
        log: The file for the process's stderr: a pipe would have to be read all the time.
    """

    def __init__(self, toolchain: Toolchain, log: IO[bytes]) -> None:
        self._toolchain = toolchain
        self._icons = LucideIcons(toolchain.icons)
        self._sdk_version: str = json.loads(
            (toolchain.packages["@opentabs-dev/plugin-sdk"] / PACKAGE).read_bytes()
        )["version"]
        self._log = log
        self._process: Process | None = None
        self._answers: BufferedByteReceiveStream  # of the process

    async def build(self, directory: Path, *, with_types: bool = False) -> Built:
        """Build the plugin in a directory into its `dist/`.

        Args:
            directory: The plugin's directory.
            with_types: Report type errors as problems, if the plugin has TypeScript installed.

        Raises:
            BuildError: The builder crashed, or a file cannot be read or written.
        """
        began = perf_counter()
        directory = Path(await anyio.Path(directory).resolve())
        try:
            built = await self._build(directory, with_types=with_types)
        except OSError as error:
            raise BuildError(f"Cannot build the plugin: {error}") from error
        return replace(built, seconds=perf_counter() - began)

    async def _build(self, directory: Path, *, with_types: bool) -> Built:
        package, problems = _read_package(directory)
        entry = _first(directory, ENTRIES)
        if entry is None:
            why = f"has no {ENTRIES[0]}; write one that exports the plugin (or {ENTRIES[2]})"
            problems.append(SourceProblem(f"{directory.name}/", why=why))
        if entry is None or package is None:
            return Built(directory, "", tuple(problems))
        name = _name(package)
        link_packages(directory, self._toolchain.packages)
        report = await self._ask(
            {
                "root": str(directory),
                "entry": entry,
                "preScript": _first(directory, PRE_SCRIPTS),
                "plugin": name,
            }
        )
        problems += find_source_problems(package, report, entry=entry, icons=self._icons)
        if with_types and (tsc := find_tsc(directory)) is not None:
            problems += await check_types(directory, tsc, self._toolchain.node)
        warnings = find_source_warnings(report, entry=entry)
        tools = tuple(str(tool.fields.get("name")) for tool in report.description.tools)
        files: dict[str, bytes] = {}
        changed = False
        if not problems:
            files = self._files(package, report)
            changed = _write_dist(directory / DIST, files)
        return Built(
            directory,
            name,
            tuple(problems),
            tuple(warnings),
            tools,
            {name: len(content) for name, content in files.items()},
            changed,
        )

    def _files(self, package: Mapping[str, Any], report: BuildReport) -> dict[str, bytes]:
        texts = dict(report.files)
        unsigned = texts[ADAPTER]
        signature = _sha256(unsigned.encode())
        texts[ADAPTER] = unsigned.replace(_HASH_PLACEHOLDER, signature)
        files = {name: text.encode() for name, text in sorted(texts.items())}
        document = tools_json(
            package,
            report,
            icons=self._icons,
            sdk_version=self._sdk_version,
            hashes={
                ADAPTER: signature,
                **{name: _sha256(content) for name, content in files.items() if name == PRE_SCRIPT},
            },
        )
        text = json.dumps(document, ensure_ascii=False, indent=2)
        return {**files, TOOLS: f"{text}\n".encode()}

    async def stop(self) -> None:
        """Stop the process, if there is one; the next build starts another."""
        process, self._process = self._process, None
        if process is not None:
            # It holds nothing that requires a graceful shutdown.
            if process.returncode is None:
                process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()

    async def _ask(self, request: Mapping[str, Any]) -> BuildReport:
        answer = b""
        try:
            process = self._process or await self._start()
            assert process.stdin is not None
            await process.stdin.send(json.dumps(request).encode() + b"\n")
            answer = await self._answers.receive_until(b"\n", _ANSWER_LIMIT)
        except (
            anyio.BrokenResourceError,
            anyio.EndOfStream,
            anyio.IncompleteRead,
            anyio.ClosedResourceError,
        ) as error:
            self._log.seek(0)
            output = self._log.read().decode(errors="replace").strip()
            raise BuildError(f"The builder crashed. Its output:\n{output}") from error
        finally:
            if not answer:  # it has crashed, or the next request would get this one's answer
                await self.stop()
        return BuildReport.model_validate_json(answer)

    async def _start(self) -> Process:
        self._log.seek(0)
        self._log.truncate()
        command = [str(self._toolchain.node), str(self._toolchain.builder)]
        process = await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=self._log)
        assert process.stdout is not None
        self._process, self._answers = process, BufferedByteReceiveStream(process.stdout)
        return process


@asynccontextmanager
async def start_builder(toolchain: Toolchain) -> AsyncGenerator[Builder]:
    """Return a builder, whose process the first build starts; leaving the context stops it."""
    with TemporaryFile() as log:
        builder = Builder(toolchain, log)
        try:
            yield builder
        finally:
            await builder.stop()


def _read_package(directory: Path) -> tuple[dict[str, Any] | None, list[SourceProblem]]:
    try:
        value: JsonValue = json.loads((directory / PACKAGE).read_bytes())
    except FileNotFoundError:
        why = "is missing; `opentabs new NAME` creates a plugin with all its files"
    except (OSError, ValueError) as error:
        why = f"cannot be read: {error}"
    else:
        if isinstance(value, dict):
            return value, []
        why = "is not a JSON object"
    return None, [SourceProblem(PACKAGE, why=why)]


def _name(package: Mapping[str, Any]) -> str:
    try:
        return plugin_id(str(package.get("name")))
    except ValueError:
        return ""  # a problem, reported with the others


def _first(directory: Path, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if exists(directory / name)), None)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_dist(dist: Path, files: Mapping[str, bytes]) -> bool:
    """Write the files that differ, each atomically; return whether any did."""
    try:
        dist.mkdir(exist_ok=True)
        different = [name for name, content in files.items() if _content(dist / name) != content]
        # tools.json comes last, so that a watcher finds the rest in place.
        for name in sorted(different, key=lambda name: name == TOOLS):
            write_whole(dist / name, files[name])
        if not different:
            os.utime(dist)  # the source was compared with this build: it is fresh
        if PRE_SCRIPT not in files:
            (dist / PRE_SCRIPT).unlink(missing_ok=True)
            (dist / f"{PRE_SCRIPT}.map").unlink(missing_ok=True)
    except OSError as error:
        raise BuildError(f"Cannot write {dist}: {error.strerror}.") from error
    return bool(different)


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
