"""The OpenTelemetry context of a call, which crosses from endpoint to worker.

It is the `traceparent` of W3C Trace Context. Where the program does not use OpenTelemetry, nothing
of it is loaded.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager

_LOADED = "opentelemetry.trace"
_HEADER = "traceparent"


def traceparent() -> str | None:
    """Return the current span's context; None if there is none."""
    if _LOADED not in sys.modules:
        return None
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 (an extra)
        TraceContextTextMapPropagator,
    )

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(_HEADER)


@contextmanager
def within_trace(parent: str | None) -> Generator[None]:
    """Make a span of another process the parent of those that begin in this context."""
    if parent is None or _LOADED not in sys.modules:
        yield
        return
    from opentelemetry.context import attach, detach  # noqa: PLC0415
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
        TraceContextTextMapPropagator,
    )

    token = attach(TraceContextTextMapPropagator().extract({_HEADER: parent}))
    try:
        yield
    finally:
        detach(token)
