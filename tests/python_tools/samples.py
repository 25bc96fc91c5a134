"""The tools that the tests call in every way, including `opentabs serve --tools` with this file."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from mcp.types import CallToolResult, ImageContent, TextContent

from opentabs_py import Module, Progress, ToolError, ToolStream, skill, tool

Callback = Callable[[Any], Awaitable[None]] | None


@dataclass
class Found:
    """What a search found."""

    count: int
    names: list[str]


# --- values, and how a tool is called ---


@tool
def export(query: str, progress: Progress, pages: int = 3) -> dict[str, Any]:
    """Export everything that matches.

    Args:
        query: What to look for.
        pages: How many pages to read.
    """
    for page in range(1, pages + 1):
        progress.report(f"page {page}", progress=page, total=pages)
    return {"query": query, "thread": threading.current_thread().name}


@tool
async def search(names: list[str], progress: Progress) -> Found:
    """Search for names."""
    progress.report(f"{len(names)} names")
    await asyncio.sleep(0)
    return Found(len(names), names)


@tool
def picture() -> ImageContent:
    """Draw a picture."""
    return ImageContent(data="AAAA", mime_type="image/png")


@tool
def both() -> list[Any]:
    """Return content of two kinds."""
    return [TextContent(text="A picture:"), ImageContent(data="AAAA", mime_type="image/png")]


def _greet(greeting: str, name: str) -> str:
    """Greet somebody."""
    return f"{greeting}, {name}!"


hello = tool(partial(_greet, greeting="Hello"), name="hello")


@tool
def refuse() -> None:
    """Fail so that the caller knows why."""
    raise ToolError("Sign in first.", code="AUTH", category="auth", retryable=True)


@tool
def refuse_with_a_result() -> CallToolResult:
    """Fail with a result of MCP."""
    picture = ImageContent(data="AAAA", mime_type="image/png")
    texts = [TextContent(text="The disk is full."), TextContent(text="Free 2 GB.")]
    return CallToolResult(content=[texts[0], picture, texts[1]], is_error=True)


NOT_UTF8 = "old\udce9.txt"  # as Python reads the name of a file that is not UTF-8


@tool
def name_file(progress: Progress) -> dict[str, Any]:
    """Name a file that is not UTF-8."""
    progress.report(NOT_UTF8)
    return {"files": [NOT_UTF8, {NOT_UTF8: 1}]}


@tool
def name_file_in_content() -> TextContent:
    """Name a file that is not UTF-8, as content of MCP."""
    return TextContent(text=NOT_UTF8)


@tool
def refuse_file() -> None:
    """Fail with a file that is not UTF-8."""
    raise ToolError(f"There is no {NOT_UTF8}.", code=NOT_UTF8)


@tool
def refuse_with_other_types() -> None:
    """Fail with an exception and a status."""
    message: Any = FileNotFoundError("no such file")
    status: Any = 404
    raise ToolError(message, code=status)


@tool
def crash() -> None:
    """Fail with an unexpected error."""
    raise ValueError("the secret")


@tool
def leave() -> None:
    """End the program, were it not for the server."""
    raise SystemExit(3)


class GivenUp(BaseException):
    """Not an `Exception`, like those with which `pytest.fail()` and `pytest.skip()` end a test."""


@tool
async def give_up() -> None:
    """Raise it in the server's own thread."""
    raise GivenUp("the secret")


@tool
def interrupt() -> None:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt


@tool
async def interrupt_async() -> None:
    """Raise it in the server's own thread."""
    raise KeyboardInterrupt


@tool
def close() -> None:
    """Raise what ends a generator that is closed."""
    raise GeneratorExit


@tool
async def close_async() -> None:
    """Raise it in the server's own thread."""
    raise GeneratorExit


@tool
async def leave_a_task_group_open() -> str:
    """Return within a task group, such as that of a connection which it keeps."""
    await anyio.create_task_group().__aenter__()
    return "kept"


@tool
async def close_generator_in_scope() -> AsyncGenerator[Any]:
    """Yield what is not JSON, within a timeout."""
    with anyio.fail_after(3600):
        yield "before"
        yield object()


@tool
def close_generator() -> Generator[str]:
    """Raise it in a generator."""
    yield "before"
    raise GeneratorExit


@tool
async def close_generator_async() -> AsyncGenerator[str]:
    """Raise it in an async generator."""
    yield "before"
    raise GeneratorExit


@tool
async def nest(progress: Progress) -> Any:
    """Call another tool."""
    progress.report("before")
    return await progress.call("export", {"query": "inner", "pages": 2})


@tool
def nest_in_thread(progress: Progress) -> Any:
    """Call another tool from a thread."""
    return progress.call_from_thread("export", {"query": "inner", "pages": 1})


# --- the injected callback ---


@tool
async def callback_async(query: str, progress_callback: Callback = None) -> str:
    """Report to the application."""
    if progress_callback:
        await progress_callback({"status": "running", "message": "Step 1"})
        await progress_callback(["any", "value"])
        await progress_callback({"status": "done"})
    return query


@tool
def callback_sync(query: str, notify: Callable[[Any], Awaitable[None]] | None = None) -> str:
    """Report to the application from a thread, without awaiting."""
    if notify:
        notify({"message": "Step 1"})
    return query


@tool
async def both_channels(progress_callback: Callback = None) -> AsyncGenerator[dict[str, Any]]:
    """Report to the application and to the model in turn."""
    for step in (1, 2):
        if progress_callback:
            await progress_callback({"message": f"step {step}"})
        yield {"found": step}


# --- generators ---


@tool
async def yields_async(count: int) -> AsyncGenerator[Any]:
    """Yield texts and objects."""
    for number in range(count):
        yield f"text {number}"
        yield {"n": number}
        await asyncio.sleep(0)
    yield None
    yield "end"


@tool
def yields_sync(count: int) -> Generator[Any]:
    """Yield from a thread."""
    for number in range(count):
        yield {"n": number, "thread": threading.get_ident()}


@tool
async def yields_then_fails() -> AsyncGenerator[str]:
    """Yield, and fail."""
    yield "first"
    yield "second"
    raise ToolError("The third is missing.", code="GONE")


@tool(idle=0.3)
async def yields_then_hangs(note: str) -> AsyncGenerator[str]:
    """Yield, and then wait silently."""
    try:
        yield "first"
        await asyncio.sleep(3600)
    finally:
        closed.append(note)


@tool(idle=3600)
async def yields_then_waits(note: str, progress: Progress) -> AsyncGenerator[str]:
    """Report, yield, and then wait until the caller gives up."""
    try:
        progress.report("begun")
        yield "first"
        await asyncio.sleep(3600)
    finally:
        closed.append(note)


closed: list[str] = []


@tool
def was_closed(note: str) -> bool:
    """Return whether that generator was closed."""
    return note in closed


# --- timers ---


@tool(idle=0.3)
async def hangs(progress: Progress) -> None:
    """Report once, then never again."""
    progress.report("one")
    await asyncio.sleep(3600)


@tool(idle=60, ceiling=0.3)
def hangs_in_thread(note: str, progress: Progress) -> None:
    """Report forever, as long as the caller waits."""
    while not progress.cancelled:
        progress.heartbeat()
        time.sleep(0.01)
    closed.append(note)


# --- streams ---


class Namer(Module):
    """Names a file in a stream."""

    @skill
    def name_in_stream(self) -> str:
        """Name a file that is not UTF-8, in an update."""
        self.start_tool("name_in_stream")
        self.tool_update("name_in_stream", NOT_UTF8)
        self.stop_tool("name_in_stream")
        return "Named."


class Counter(Module):
    """Counts during the call and afterwards."""

    def __init__(self) -> None:  # without super().__init__(), as people write it
        self.held: list[threading.Event] = []  # each lets one thread count

    @skill
    def count_to(self, n: int) -> str:
        """Count while the call runs."""
        self.start_tool("count_to")
        for number in range(n):
            self.tool_update("count_to", f"At {number + 1} of {n}")
        self.stop_tool("count_to")
        self.stop_tool("count_to")
        return f"Counted to {n}."

    @skill
    def count_later(self, n: int) -> str:
        """Count once the call has returned and the test requests it."""
        stream = self.start_tool("count_later")
        self.tool_update("count_later", "Begun")
        self.held.append(go_on := threading.Event())
        threading.Thread(target=self._count, args=(stream, n, go_on), daemon=True).start()
        return "Begun."

    @skill
    def release(self) -> str:
        """Let the counting begin."""
        while self.held:
            self.held.pop().set()
        return "Released."

    @skill
    def twice(self) -> str:
        """Open a stream twice."""
        self.start_tool("twice")
        try:
            self.start_tool("twice")
        finally:
            self.stop_tool("twice")
        return "Never."

    @skill
    def from_a_thread(self) -> str:
        """Open a stream in a thread without a call."""
        errors: list[str] = []

        def start() -> None:
            try:
                self.start_tool("from_a_thread")
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        self.tool_update("from_a_thread", "Nobody hears this.")
        return errors[0]

    def _count(self, stream: ToolStream, n: int, go_on: threading.Event) -> None:
        if not go_on.wait(30):
            return  # the test has ended, and what is logged now would appear in another
        for number in range(n):
            stream.update(f"Update {number + 1} of {n}")
        stream.stop()
