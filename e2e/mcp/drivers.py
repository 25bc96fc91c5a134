"""Third-party MCP clients behind one interface: the Python and TypeScript SDKs."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypedDict

import anyio
from anyio.abc import ByteSendStream
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from e2e.mcp.node import node_command
from e2e.waiting import PATIENT

LONGEST_LINE = 1024 * 1024  # bytes


class Options(TypedDict, total=False):
    """The timeouts of the SDK for TypeScript, in ms."""

    timeout: int
    resetTimeoutOnProgress: bool
    maxTotalTimeout: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call to make.

    Attributes:
        abort: Abort it at its first report.
    """

    name: str
    arguments: dict[str, Any]
    options: Options = field(default_factory=Options)
    abort: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended for its client.

    Attributes:
        result: The protocol's result; None if the client gave up.
        error: Why it gave up.
        reports: The progress notifications that it received for the call.
    """

    result: dict[str, Any] | None = None
    error: str | None = None
    reports: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def value(self) -> Any:
        """The tool's value."""
        assert self.result is not None, self.error
        assert not self.result.get("isError"), self.result
        return self.result["structuredContent"]


class Driver(Protocol):
    """A connected client."""

    tools: list[str]

    async def call_all(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make concurrent calls; return their outcomes when the last has ended."""
        ...


@asynccontextmanager
async def drive(client: str, target: str | list[str]) -> AsyncGenerator[Driver]:
    """Connect a client to a server's URL, or let it start the server's command.

    Args:
        client: `python` or `python-legacy`, `v1`, `v2` or `v2-auto` of TypeScript; the TypeScript
            clients use the initialize era by default.
        target: The server.
    """
    language, _, mode = client.partition("-")
    if language == "python":
        async with drive_python(mode or "auto", target) as driver:
            yield driver
    else:
        async with drive_typescript(language, mode or "legacy", target) as driver:
            yield driver


# --- TypeScript ---


class TypeScriptDriver:
    """The other end of `clients/client.mjs`."""

    def __init__(self, stdin: ByteSendStream, stdout: BufferedByteReceiveStream) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self.tools: list[str] = []

    async def start(self) -> None:
        """Wait until it is connected."""
        self.tools = (await self._receive())["tools"]

    async def call_all(self, calls: Sequence[Call]) -> list[Outcome]:
        line = json.dumps([asdict(call) for call in calls])
        await self._stdin.send(f"{line}\n".encode())
        answer = await self._receive()
        return [_outcome(outcome) for outcome in answer["outcomes"]]

    async def _receive(self) -> dict[str, Any]:
        with anyio.fail_after(PATIENT):
            line = await self._stdout.receive_until(b"\n", LONGEST_LINE)
        answer: dict[str, Any] = json.loads(line)
        return answer


def _outcome(outcome: dict[str, Any]) -> Outcome:
    error = outcome.get("error")
    message = None if error is None else error["message"]
    return Outcome(outcome.get("result"), message, outcome["reports"])


@asynccontextmanager
async def drive_typescript(
    version: str, mode: str, target: str | list[str]
) -> AsyncGenerator[TypeScriptDriver]:
    """Run a client of the SDK for TypeScript, of version `v1` or `v2`."""
    named = target if isinstance(target, str) else json.dumps(target)
    command = [*node_command("client.mjs"), version, mode, named]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        driver = TypeScriptDriver(process.stdin, BufferedByteReceiveStream(process.stdout))
        try:
            await driver.start()
            yield driver
            await process.stdin.aclose()
            with anyio.fail_after(PATIENT):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
    assert process.returncode == 0


# --- Python ---


class PythonDriver:
    """The SDK's own client, in this process."""

    def __init__(self, client: Client, tools: list[str]) -> None:
        self._client = client
        self.tools = tools

    async def call_all(self, calls: Sequence[Call]) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}

        async def make(index: int, call: Call) -> None:
            outcomes[index] = await self._make(call)

        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                for index, call in enumerate(calls):
                    tasks.start_soon(make, index, call)
        return [outcomes[index] for index in range(len(calls))]

    async def _make(self, call: Call) -> Outcome:
        reports: list[dict[str, Any]] = []
        timeout = call.options.get("timeout")

        with anyio.CancelScope() as scope:

            async def note(progress: float, total: float | None, message: str | None) -> None:
                reports.append({"progress": progress, "total": total, "message": message})
                if call.abort:
                    scope.cancel()

            try:
                result = await self._client.call_tool(
                    call.name,
                    call.arguments,
                    read_timeout_seconds=None if timeout is None else timeout / 1000,
                    progress_callback=note,
                )
            except MCPError as error:
                return Outcome(error=str(error), reports=reports)
            return Outcome(result.model_dump(mode="json", by_alias=True), reports=reports)
        return Outcome(error="enough", reports=reports)


@asynccontextmanager
async def drive_python(mode: str, target: str | list[str]) -> AsyncGenerator[PythonDriver]:
    """Connect the client of the SDK for Python, in mode `auto` or `legacy`."""
    server: str | StdioServerParameters
    if isinstance(target, str):
        server = target
    else:
        command, *args = target
        server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        with anyio.fail_after(PATIENT):
            tools = [tool.name for tool in (await client.list_tools()).tools]
        yield PythonDriver(client, tools)


# --- the Inspector ---


@dataclass(frozen=True, slots=True)
class Inspected:
    """The output of the Inspector's command line."""

    code: int
    result: dict[str, Any]
    stderr: str


async def inspect(target: str | list[str], *options: str, storage: Path) -> Inspected:
    """Run the MCP Inspector's command line once, on a server's URL or command."""
    server = [target] if isinstance(target, str) else ["--", *target]
    command = [*node_command("mcp-inspector"), "--cli", "--format", "json", *options, *server]
    kept = {"MCP_STORAGE_DIR": str(storage), "MCP_CATALOG_PATH": str(storage / "mcp.json")}
    environment = {**os.environ, **kept}
    with anyio.fail_after(PATIENT):
        done = await anyio.run_process(
            command, check=False, env=environment, stderr=subprocess.PIPE
        )
    said = json.loads(done.stdout) if done.stdout.strip() else {}
    return Inspected(done.returncode, said.get("result", {}), done.stderr.decode())


def serve_command(url: str, plugin: str, *options: str) -> list[str]:
    """Return the command that serves a plugin over stdio, in a tab with that URL."""
    serve = [sys.executable, "-m", "opentabs_py", "serve", "--stdio"]
    return [*serve, "--plugin", plugin, "--open", url, *options]
