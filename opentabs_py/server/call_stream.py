"""Answers a request with what happens in a call: a JSON document per line, as it happens."""

import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from math import inf
from typing import Any

import anyio
from starlette.types import Receive, Send

from opentabs_py.calling.call import CallOrigin
from opentabs_py.calling.observer import CallObserver
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import Pace, ProgressFilter, ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.questions import Question
from opentabs_py.server.mcp.client_limits import WAITING_LOGS
from opentabs_py.server.mcp.sdk_loading import load_sdk
from opentabs_py.server.tools.tool_calls import ToolCalls


class CallStream(CallObserver):
    """Sends what happens in a call, one JSON document per line; its failures never fail the call.

    Args:
        send: Sends to the client; waits while the client does not read.
        pace: How often to send progress.
    """

    def __init__(self, send: Send, pace: Pace) -> None:
        self._send = send
        self._filter = ProgressFilter(pace, started=anyio.current_time())
        self._notes: deque[dict[str, Any]] = deque(maxlen=WAITING_LOGS)
        self._began = anyio.current_time()
        self._changed = anyio.Event()
        self._sending = anyio.Lock()

    async def serve(self, receive: Receive, make: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        """Answer a request with what happens in a call until it ends.

        Args:
            receive: Receives from the client; if it goes away, the call is cancelled.
            make: Makes the call with `call`, and returns the outcome.
        """
        await self.open()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_at_disconnect, receive, tasks.cancel_scope)
            tasks.start_soon(self.run)
            await self.finish(await make())  # the client may take long to read a large result
            tasks.cancel_scope.cancel()

    async def open(self) -> None:
        """Begin the response."""
        headers = [(b"content-type", b"application/x-ndjson")]
        start = {"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers}
        await self._send(start)

    async def call(
        self,
        calls: ToolCalls,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        origin: CallOrigin,
        call_id: str | None = None,
    ) -> dict[str, Any]:
        """Call a tool, while `run` is running, and return the outcome.

        The arguments are those of `ToolCalls.call`.
        """
        await load_sdk()  # a thread may be loading the MCP SDK now
        from opentabs_py.server.mcp.results import outcome_document, result_of  # noqa: PLC0415

        began = time.perf_counter()
        self._began = anyio.current_time()
        call = calls.call(
            tool,
            arguments,
            limits=limits,
            observers=[self],
            origin=origin,
            call_id=call_id,
        )
        result = await result_of(call, tool, with_stack=calls.debug)
        outcome, failed = outcome_document(result, time.perf_counter() - began)
        return {"outcome": outcome, "failed": failed}

    def send_call_id(self, call_id: str) -> None:
        """Send the call's id."""
        self._note({"callId": call_id})

    def say(self, text: str) -> None:
        """Send the current state as a message for users."""
        self._note({"say": text})

    def ask(self, question: Question) -> None:
        """Send a question, for the user to answer."""
        self._note({"question": asdict(question)})

    def end_question(self, question_id: str) -> None:
        """Send that a question has ended: it was answered, perhaps elsewhere, or timed out."""
        self._note({"questionEnded": question_id})

    def warn(self, text: str) -> None:
        """Send a warning, for users."""
        self._note({"warning": text})

    def log(self, level: str, message: str) -> None:
        """Send what is logged of the call."""
        self._note({"log": {"level": level, "message": message}})

    def on_waiting(self, why: str, /) -> None:
        """Send why the call waits."""
        self.say(why)

    def on_reports(self, reports: Sequence[ProgressReport], /) -> None:
        """Receive progress reports; `core.progress` decides which of them are sent."""
        now = anyio.current_time()
        for report in reports:
            self._filter.report(report, now)
        self._changed.set()

    def on_log(self, entries: Sequence[LogEntry], /) -> None:
        """Receive what the call's plugin logs."""
        for entry in entries:
            self.log(entry.level, entry.message)

    async def run(self) -> None:
        """Send what there is, until cancelled."""
        while True:
            self._changed = anyio.Event()
            async with self._sending:
                await self._write([*self._drain(), *self._progress(finish=False)])
            next_time = self._filter.next_time()
            with anyio.CancelScope(deadline=inf if next_time is None else next_time):
                await self._changed.wait()

    async def finish(self, outcome: dict[str, Any]) -> None:
        """Send what is left and the outcome, and end the response."""
        async with self._sending:
            await self._write([*self._drain(), *self._progress(finish=True), outcome])
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _note(self, document: dict[str, Any]) -> None:
        self._notes.append(document)
        self._changed.set()

    def _drain(self) -> list[dict[str, Any]]:
        notes = [*self._notes]
        self._notes.clear()
        return notes

    def _progress(self, *, finish: bool) -> list[dict[str, Any]]:
        now = anyio.current_time()
        ready = self._filter.finish(now) if finish else self._filter.drain(now)
        at = round(now - self._began, 4)
        return [{"progress": {**asdict(each), "at": at}} for each in ready]

    async def _write(self, documents: Sequence[dict[str, Any]]) -> None:
        if documents:
            body = "".join(json.dumps(each) + "\n" for each in documents).encode()
            await self._send({"type": "http.response.body", "body": body, "more_body": True})


async def cancel_at_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel a scope when the client of a request goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
