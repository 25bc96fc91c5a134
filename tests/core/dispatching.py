"""Calls and messages for tests of the dispatch."""

from collections.abc import Sequence

from opentabs_py.core.dispatch import Dispatch, Failed
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import (
    DispatchParams,
    DocumentState,
    LostParams,
    ProgressParams,
    ResultParams,
    ToolLost,
    ToolProgress,
    ToolResult,
)
from opentabs_py.errors import CallTimeoutError, ChainError, ToolFailedError

A, B = "a" * 32, "b" * 32
PAGE, OTHER_PAGE = "d" * 32, "e" * 32
TAB, OTHER_TAB = 7, 8
Made = tuple[DispatchParams, int, Limits]


def request(call_id: str = A, *, idle: float = 30.0, ceiling: float = 300.0) -> Made:
    params = DispatchParams(
        document_id=PAGE, call_id=call_id, plugin="demo", tool="export", input={"n": 1}
    )
    return params, TAB, Limits(idle, ceiling)


def document(*calls: str, document_id: str = PAGE, tab_id: int = TAB) -> DocumentState:
    return DocumentState(
        document_id=document_id,
        tab_id=tab_id,
        url="https://example.com/",
        title="",
        active=True,
        focused=True,
        protected=True,
        calls=list(calls),
        plugins={},
    )


def progress(*seqs: int, call_id: str = A) -> ToolProgress:
    reports = [ProgressReport(seq) for seq in seqs]
    return ToolProgress(params=ProgressParams(document_id=PAGE, call_id=call_id, reports=reports))


def result(value: object = 42, *, call_id: str = A, seq: int = 0) -> ToolResult:
    return ToolResult(params=ResultParams(document_id=PAGE, call_id=call_id, seq=seq, value=value))


def lost(reason: str, call_id: str = A) -> ToolLost:
    return ToolLost(params=LostParams.model_validate({"callId": call_id, "reason": reason}))


def connected(*calls: Made, documents: Sequence[DocumentState] = ()) -> Dispatch:
    """Return a dispatch whose page is there, with calls started at 0 and all outputs drained."""
    dispatch = Dispatch()
    dispatch.connection_resumed(documents or [document()], [TAB, OTHER_TAB], 0.0)
    for call in calls:
        dispatch.call(*call, 0.0)
    dispatch.drain_messages()
    return dispatch


def the_error(
    dispatch: Dispatch, call_id: str = A
) -> ChainError | CallTimeoutError | ToolFailedError:
    (event,) = dispatch.drain_events()
    assert isinstance(event, Failed)
    assert event.call_id == call_id
    assert isinstance(event.error, ChainError | CallTimeoutError | ToolFailedError)
    return event.error


def settled(dispatch: Dispatch) -> dict[str, list[str]]:
    return {each.params.document_id: each.params.call_ids for each in dispatch.drain_settled()}
