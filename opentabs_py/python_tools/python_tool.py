"""A function served as a tool: what clients see of it, and how a call of it runs."""

import asyncio
import inspect
import json
import logging
import math
import re
import signal
import threading
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, cast

from pydantic_core import to_json

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.listing import Listing
from opentabs_py.calling.tool import Output
from opentabs_py.core import codes, failures
from opentabs_py.core.arguments import ArgumentReader
from opentabs_py.core.consent import rule_name
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugin_names import LONGEST_TOOL_NAME
from opentabs_py.core.schemas.checker import check_schema
from opentabs_py.core.text import well_formed
from opentabs_py.errors import (
    CallError,
    CallRefusedError,
    CallTimeoutError,
    ConfigError,
    ErrorDetail,
    ToolFailedError,
)
from opentabs_py.python_tools.declare import declaration_of, within_partial
from opentabs_py.python_tools.docstrings import parse_docstring
from opentabs_py.python_tools.own_task import Ended, run_in_own_task
from opentabs_py.python_tools.progress import CallReport, Progress, progress_callback
from opentabs_py.python_tools.run import ToolHost, ToolRun, current_run
from opentabs_py.python_tools.signature import innermost, read_signature
from opentabs_py.python_tools.threads import consume, iterate_in_thread, run_in_thread
from opentabs_py.python_tools.values import Serializer, Yielded, name_streams, to_output

logger = logging.getLogger(__name__)

_HERE: Final = Path(__file__).parent
_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{LONGEST_TOOL_NAME}}}")
_HINTS = frozenset({"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})


class PythonTool:
    """A function, ready to be called as a tool.

    Args:
        function: The function to run.
        host: State shared with the other tools of its server.
        owner: What the tool belongs to; by default, the function's module.

    Raises:
        ConfigError: The function cannot be a tool; the text says why.
    """

    def __init__(
        self, function: Callable[..., Any], host: ToolHost, *, owner: str | None = None
    ) -> None:
        declaration = declaration_of(function)
        inner = innermost(function)
        name = declaration.name or _name_of(function)
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} is not a valid tool name. Use letters, digits, _ and -: "
                '@tool(name="my_tool").'
            )
        if _lacks_its_object(function):
            raise ConfigError(
                f"The tool {name} is a method without its object. Pass a bound method: "
                f"tools=[an_object.{inner.__name__}]."
            )
        annotations = declaration.annotations
        _check_annotations(name, annotations or {})
        docstring = parse_docstring(inspect.getdoc(inner))
        self._signature = read_signature(function, name, docstring)
        self.listing = Listing(
            name=name,
            owner=owner or rule_name(inner.__module__ or "python"),
            title=declaration.title or name,
            description=declaration.description or docstring.text or name,
            input_schema=self._signature.input_schema,
            output_schema=self._signature.output_schema,
            annotations=None if annotations is None else dict(annotations),
        )
        for which in (self.listing.input_schema, self.listing.output_schema):
            try:
                check_schema(which or {})
            except ValueError as error:
                raise ConfigError(
                    f"The types of {name} result in an unusable JSON Schema: it {error}."
                ) from None
        described = self.listing.describe()
        try:
            to_json(described)
            json.dumps(described, allow_nan=False)
        except ValueError as error:  # such as a lone surrogate, or infinity
            raise ConfigError(
                f"The tool {name} cannot be described in JSON: {error}. Change its description or "
                "the types of its parameters."
            ) from None
        self._declaration = declaration
        self._function = function
        self._host = host
        self._runs_here = inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)
        self._arguments = ArgumentReader(
            self.listing.name, self._signature.input_schema, limit=host.message_limit
        )

    @property
    def limits(self) -> Limits | None:
        """The tool's own timers; None for the server's."""
        return self._declaration.limits(self._host.limits)

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return what runs the function; see `Tool.prepare`."""
        if call.recorder is not None:
            call.recorder.record_tool(self.listing.owner, self.listing.name, in_page=False)
        positional, named = self._check(call.arguments)
        return partial(self._make, call, positional, named)

    async def _make(self, call: ToolCall, positional: list[Any], named: dict[str, Any]) -> Any:
        run = ToolRun(self._host, self.listing.name, call, self._declaration)
        for parameter, what in self._signature.injected.items():
            named[parameter] = Progress(run) if what == "progress" else progress_callback(run)
        call.notify_sent()
        call.notify_begun()
        has_value = False
        token = current_run.set(run)
        try:
            value = await self._run(run, partial(self._function, *positional, **named))
            run.flush()
            has_value = True
            return name_streams(value, run.open_streams, run.client)
        finally:
            current_run.reset(token)
            run.end(has_value=has_value)

    def _check(self, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        injected = self._signature.injected
        asked = {key: value for key, value in arguments.items() if key not in injected}
        given = self._arguments.read(asked)
        try:
            return self._signature.convert(self.listing.name, given)
        except CallRefusedError:
            raise
        except CallError as error:  # of the tool's own validators, like the following
            raise _with_partial(error, error.partial) from None
        except BaseException as error:
            if _is_interrupt(error):
                raise
            raise _raised(self.listing.name, error) from None

    async def _run(self, run: ToolRun, function: Callable[[], Any]) -> Any:
        """Run the function until it ends or a timer ends it."""
        name = self.listing.name
        serializer = Serializer(name, self._host.message_limit)
        yielded = Yielded(serializer)
        ended: Ended[Any] = Ended()
        with run.scope:
            ended = await run_in_own_task(
                name, partial(self._call, run, function, serializer, yielded)
            )
        failure: CallError | None = None
        if isinstance(ended.error, CallError):
            failure = _own(ended.error)
        elif ended.error is not None:  # whatever it is, it ends only this call
            if self._runs_here and _is_interrupt(ended.error):
                raise ended.error
            failure = _raised(name, ended.error)
        failure = run.timeout or failure
        if failure is None:
            return ended.value
        run.flush()
        raise _with_partial(failure, yielded.partial() or failure.partial)

    async def _call(
        self, run: ToolRun, function: Callable[[], Any], serializer: Serializer, yielded: Yielded
    ) -> Any:
        try:
            return await self._call_function(run, function, serializer, yielded)
        except asyncio.CancelledError as cancelled:
            waited = _within_tool(cancelled.__traceback__)
            if run.timeout is not None and waited is not None:
                stack = "It waited here:\n" + "".join(traceback.format_tb(waited))
                run.timeout.detail = replace(run.timeout.detail, stack=stack)
                logger.warning("The tool %s timed out. %s", self.listing.name, stack.rstrip())
            raise

    async def _call_function(
        self, run: ToolRun, function: Callable[[], Any], serializer: Serializer, yielded: Yielded
    ) -> Any:
        value = function() if self._runs_here else await run_in_thread(function)
        if inspect.isawaitable(value):
            value = await value
        items: AsyncGenerator[Any]
        if inspect.isgenerator(value):
            items = iterate_in_thread(value)
        elif inspect.isasyncgen(value):
            items = cast(AsyncGenerator[Any], value)
        else:
            return to_output(value, serializer)

        def add(item: Any) -> None:
            run.record(CallReport("yield", item))
            yielded.add(item)

        await consume(items, add)
        return yielded.output()


def _name_of(function: Callable[..., Any]) -> str:
    function = within_partial(function)
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _lacks_its_object(function: Callable[..., Any]) -> bool:
    """Return whether a function was taken from its class rather than from an object."""
    is_nested = "." in innermost(function).__qualname__.rpartition(">.")[2]
    if inspect.ismethod(function) or not is_nested:
        return False
    return next(iter(inspect.signature(function).parameters), None) == "self"


def _check_annotations(tool: str, annotations: Mapping[str, Any]) -> None:
    """Check the type of each of MCP's hints.

    Raises:
        ConfigError: One is wrong.
    """
    for hint, value in annotations.items():
        kind = str if hint == "title" else bool
        if hint in _HINTS and value is not None and not isinstance(value, kind):
            wanted = "a string" if kind is str else "True or False"
            raise ConfigError(
                f"The annotation {hint} of the tool {tool} is {value!r}. Write {wanted}."
            )


def _raised(tool: str, error: BaseException) -> ToolFailedError:
    """Log an exception of a tool that is not for its caller, and return the error of its call."""
    error.__traceback__ = _within_tool(error.__traceback__) or error.__traceback__
    logger.error("The tool %s failed", tool, exc_info=error)
    stack = "".join(traceback.format_exception(error))
    return failures.tool_raised(tool, type(error).__name__, stack)


def _within_tool(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without our frames, which led to the tool's; None if it has no others."""
    while trace is not None and Path(trace.tb_frame.f_code.co_filename).parent == _HERE:
        trace = trace.tb_next
    return trace


def _own(error: CallError) -> CallError:
    """Return a tool's error; how it called another tool is its own failure, not the caller's."""
    if isinstance(error, CallRefusedError | CallTimeoutError):
        return ToolFailedError(error.detail)
    return error


def _with_partial(error: CallError, partial: Output | None) -> CallError:
    """Return a copy of an error that has the output before it: tools may raise one repeatedly."""
    kind = type(error)
    failure = kind.__new__(kind, *error.args)
    failure.__dict__.update(error.__dict__)
    failure.__cause__, failure.__context__ = error.__cause__, error.__context__
    failure.__suppress_context__ = error.__suppress_context__
    failure.partial = partial
    failure.detail = _sendable(error.detail)
    return failure.with_traceback(error.__traceback__)


def _sendable(detail: ErrorDetail) -> ErrorDetail:
    """Return an error's fields with types that can be sent: a tool may give others."""

    def text(value: object, default: str | None = None) -> Any:
        return default if value is None else well_formed(str(value))

    return replace(
        detail,
        code=text(detail.code, codes.TOOL_ERROR),
        message=text(detail.message, "The tool did not say why."),
        category=text(detail.category),
        retryable=bool(detail.retryable),
        retry_after=_seconds(detail.retry_after),
        stack=text(detail.stack),
    )


def _seconds(value: object) -> float | None:
    """Return a time as the wire can carry it in milliseconds; None if it cannot."""
    try:
        seconds = float(cast("float", value))
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds * 1000) else None


def _is_interrupt(error: BaseException) -> bool:
    """Return whether this may be Ctrl-C: Python raises it in the main thread, without a handler."""
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
