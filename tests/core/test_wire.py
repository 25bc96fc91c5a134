"""Which messages are valid, and where an invalid one has its mistake."""

import json
from typing import Any

import pytest

from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import (
    PROTOCOL_VERSION,
    AckParams,
    DispatchParams,
    ErrorParams,
    ErrorResponse,
    Hello,
    PluginState,
    ProgressParams,
    Response,
    ResultResponse,
    RpcError,
    ToolAck,
    ToolDispatch,
    ToolErrored,
    ToolProgress,
    WireError,
)
from opentabs_py.core.wire import InvalidHello, OtherHello, parse_from_extension, to_json
from opentabs_py.errors import ProtocolError

PAGE, CALL, OTHER = "d" * 32, "c" * 32, "f" * 32

PROGRESS = {
    "jsonrpc": "2.0",
    "method": "tool.progress",
    "params": {"documentId": PAGE, "callId": CALL, "reports": [{"seq": 0, "progress": 0.5}]},
}
HELLO = {
    "jsonrpc": "2.0",
    "method": "hello",
    "id": 1,
    "params": {
        "protocolVersion": PROTOCOL_VERSION,
        "extensionVersion": "1.0",
        "bootId": "b",
        "browserId": "c" * 32,
        "browser": "Chromium",
        "time": 1.5,
        "tabIds": [7],
        "documents": [
            {
                "documentId": PAGE,
                "tabId": 7,
                "url": "https://example.com/",
                "title": "",
                "active": True,
                "focused": False,
                "protected": True,
                "calls": [CALL],
                "plugins": {"chat": {"readiness": "unavailable", "reason": "signed out"}},
            }
        ],
    },
}


def changed(message: dict[str, Any], path: str, value: object) -> str:
    """Return a message as JSON with one value, at a dotted path, replaced or added."""
    copy = json.loads(json.dumps(message))
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    target = copy
    for part in parents:
        target = target[part]
    target[last] = value
    return json.dumps(copy)


def problem(text: str) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        parse_from_extension(text)
    return caught.value


# --- accepted ---


def test_a_sound_message_is_read_into_its_model() -> None:
    message = parse_from_extension(json.dumps(PROGRESS))
    params = ProgressParams(document_id=PAGE, call_id=CALL, reports=[ProgressReport(0, 0.5)])
    assert message == ToolProgress(params=params)


def test_a_hello_is_read_with_all_its_documents() -> None:
    message = parse_from_extension(json.dumps(HELLO))
    assert isinstance(message, Hello)
    (document,) = message.params.documents
    assert (document.calls, document.tab_id) == ([CALL], 7)
    assert document.plugins == {"chat": PluginState(readiness="unavailable", reason="signed out")}


@pytest.mark.parametrize("path", ["params.protocolVersion", "params.added", "params.browser"])
def test_a_hello_of_another_version_is_recognized_whatever_its_shape(path: str) -> None:
    other = json.loads(changed(HELLO, "params.protocolVersion", 99))
    assert parse_from_extension(changed(other, path, 99)) == OtherHello(99)


def test_a_malformed_hello_of_this_version_is_refused() -> None:
    invalid = parse_from_extension(changed(HELLO, "params.added", 1))
    assert invalid == InvalidHello("Extra inputs are not permitted", "params.added")


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": "4"}])
def test_a_hello_whose_version_cannot_be_read_is_malformed(params: object) -> None:
    message = parse_from_extension(json.dumps({**HELLO, "params": params}))
    assert isinstance(message, InvalidHello)
    assert message.path.startswith("params")


def test_a_document_knows_as_many_calls_as_fit_in_a_message() -> None:
    calls = [f"{number:032x}" for number in range(10_000)]
    message = parse_from_extension(changed(HELLO, "params.documents.0.calls", calls))
    assert isinstance(message, Hello)
    assert message.params.documents[0].calls == calls


def test_an_integer_is_a_number() -> None:
    message = parse_from_extension(changed(PROGRESS, "params.reports.0.progress", 3))
    assert isinstance(message, ToolProgress)
    assert message.params.reports[0].progress == 3.0


@pytest.mark.parametrize(
    "message",
    [
        ResultResponse(id=3, result={"injected": 1, "problems": []}),
        ErrorResponse(id=3, error=RpcError(code=-32603, message="no")),
        ErrorResponse(id=None, error=RpcError(code=-32600, message='a "method" is wrong')),
        ResultResponse(id=3, result={"loading": [{"plugins": ["method"]}], "method": 1}),
    ],
)
def test_an_answer_is_distinguished_from_a_message_with_a_method(
    message: Response,
) -> None:
    assert parse_from_extension(to_json(message)) == message


# --- refused ---


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("params.reports.0.seq", True),
        ("params.reports.0.seq", "1"),
        ("params.reports.0.seq", 1.5),
        ("params.reports.0.seq", -1),
        ("params.reports.0.seq", 2**53),
        ("params.reports.0.progress", True),
        ("params.reports.0.progress", "1"),
        ("params.reports.0.progress", float("nan")),
        ("params.reports.0.progress", float("inf")),
        ("params.reports.0.message", 5),
        ("params.reports.0.percent", 50),
        ("params.reports", {}),
        ("params.documentId", "D" * 32),
        ("params.documentId", "d" * 31),
        ("params.documentId", "d" * 32 + "\n"),
        ("params.tool", "export"),
        ("params", []),
        ("extra", 1),
        ("jsonrpc", "1.0"),
    ],
)
def test_a_wrong_value_is_refused_and_its_path_named(path: str, value: object) -> None:
    named = path.replace(".0", "[0]")
    assert problem(changed(PROGRESS, path, value)).path == named


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("params.documents.0.active", 1),
        ("params.documents.0.active", "true"),
        ("params.documents.0.calls", ["not an id"]),
        ("params.documents.0.plugins.chat.readiness", "maybe"),
        ("params.time", -1),
        ("id", None),
    ],
)
def test_a_wrong_hello_is_refused(path: str, value: object) -> None:
    invalid = parse_from_extension(changed(HELLO, path, value))
    assert isinstance(invalid, InvalidHello)
    assert invalid.path.startswith(path.split(".0", maxsplit=1)[0])


def test_a_field_that_is_missing_is_named() -> None:
    without = {**PROGRESS, "params": {"documentId": PAGE, "reports": []}}
    assert problem(json.dumps(without)).path == "params.callId"


def test_the_names_that_fields_have_in_python_are_not_those_of_the_wire() -> None:
    text = json.dumps(PROGRESS).replace("documentId", "document_id")
    assert problem(text).path == "params.documentId"


@pytest.mark.parametrize(
    "text", ["", "{", "nonsense", "[]", "1", "null", '{"method":"tool.dance"}', '{"method":1}']
)
def test_something_that_is_not_a_message_is_refused_as_a_whole(text: str) -> None:
    assert problem(text).path == ""


def test_half_a_surrogate_pair_is_not_a_valid_string() -> None:
    assert "hex escape" in str(problem(changed(PROGRESS, "params.reports.0.message", "\ud83d")))


# --- a result that cannot be read ---


@pytest.mark.parametrize("stamps", ["", '"stamps":{"runtime.up":1.5},'])
@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("tool.result", '"value":' + "[" * 1000 + "]" * 1000),
        ("tool.result", '"value":"\\ud800"'),
        ("tool.error", '"error":{"code":7,"message":"no"}'),
    ],
)
def test_a_result_that_cannot_be_read_still_ends_its_call(
    method: str, rest: str, stamps: str
) -> None:
    message = parse_from_extension(
        f'{{"jsonrpc":"2.0","method":"{method}","params":{{"documentId":"{PAGE}",'
        f'"callId":"{CALL}","seq":12,{stamps}{rest}}}}}'
    )
    assert isinstance(message, ToolErrored)
    params = message.params
    assert (params.document_id, params.call_id, params.seq) == (PAGE, CALL, 12)
    assert params.error.code == "RESULT_NOT_SERIALIZABLE"
    assert "Return a simpler value." in params.error.message


@pytest.mark.parametrize(
    "value",
    [
        '0},"method":"tabs.changed","params":{"tabIds":[],"documents":[]',
        f'0}},"params":{{"documentId":"{PAGE}","callId":"{OTHER}","seq":12,"value":1',
        f'0,"documentId":"{OTHER}"',
        f'0,"callId":"{OTHER}"',
        '0,"seq":13',
    ],
)
@pytest.mark.parametrize("method", ["tool.result", "tool.error"])
def test_a_result_that_pretends_to_be_another_message_is_an_error_of_its_own_call(
    method: str, value: str
) -> None:
    message = parse_from_extension(
        f'{{"jsonrpc":"2.0","method":"{method}","params":{{"documentId":"{PAGE}",'
        f'"callId":"{CALL}","seq":12,"value":{value}}}}}'
    )
    assert isinstance(message, ToolErrored)
    params = message.params
    assert (params.document_id, params.call_id, params.seq) == (PAGE, CALL, 12)
    assert params.error.code == "RESULT_NOT_SERIALIZABLE"


def test_a_result_that_names_no_call_is_refused() -> None:
    text = '{"jsonrpc":"2.0","method":"tool.result","params":{"documentId":"x","value":1}}'
    assert problem(text).path == "params.documentId"


# --- writing ---


def test_what_is_written_is_read_as_it_was() -> None:
    for text in (PROGRESS, HELLO):
        message = parse_from_extension(json.dumps(text))
        assert not isinstance(message, OtherHello | InvalidHello)
        assert parse_from_extension(to_json(message)) == message


def test_a_field_without_a_value_is_left_out() -> None:
    error = WireError(code="OOPS", message="oops")
    written = to_json(
        ToolErrored(params=ErrorParams(document_id=PAGE, call_id=CALL, seq=0, error=error))
    )
    assert json.loads(written)["params"]["error"] == {
        "code": "OOPS",
        "message": "oops",
        "retryable": False,
        "started": True,
    }


def test_a_null_among_the_arguments_stays_there() -> None:
    arguments = {"a": None, "b": [None, {"c": None}]}
    params = DispatchParams(
        document_id=PAGE, call_id=CALL, plugin="demo", tool="export", input=arguments
    )
    assert json.loads(to_json(ToolDispatch(params=params)))["params"]["input"] == arguments


def test_an_answer_has_its_result_and_its_id_even_when_they_are_null() -> None:
    assert json.loads(to_json(ResultResponse(id=1, result=None)))["result"] is None
    refused = ErrorResponse(id=None, error=RpcError(code=1, message="no"))
    assert json.loads(to_json(refused))["id"] is None


def test_messages_are_written_with_the_names_of_the_wire() -> None:
    written = json.loads(to_json(ToolAck(params=AckParams(document_id=PAGE, call_id=CALL, seq=3))))
    assert written == {
        "jsonrpc": "2.0",
        "method": "tool.ack",
        "params": {"documentId": PAGE, "callId": CALL, "seq": 3},
    }
