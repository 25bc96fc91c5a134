"""Messages of workers and endpoints: what was written is read, and nothing else is accepted."""

import json
from math import inf, nan
from typing import Any

import pytest
from pydantic import ValidationError

from opentabs_py.core.fleet import failures
from opentabs_py.core.fleet.messages import (
    FLEET_VERSION,
    FOREVER,
    CallRequest,
    Cancel,
    EndpointAnnouncement,
    Failed,
    Returned,
    ToolJson,
    Tools,
    VersionSkewError,
    digest_of,
    encode,
    read_announcement,
    read_endpoint,
    read_for_endpoint,
    read_for_worker,
)
from opentabs_py.core.fleet.subjects import Subjects, caller_of, permissions
from opentabs_py.errors import ChainError, ProtocolError
from opentabs_py.version import __version__
from tests.core.fleet.test_pool import worker


@pytest.mark.parametrize("value", [None, 1, "text", {"a": None, "b": [None, {}]}, [], False])
def test_a_value_arrives_as_it_was(value: Any) -> None:
    answer = read_for_endpoint(encode(Returned(value=value)))
    assert isinstance(answer, Returned)
    assert answer.value == value


def test_arguments_arrive_as_they_were() -> None:
    ask = CallRequest(tool="t", arguments={"a": None, "b": {"c": None}}, idle=1, ceiling=2)
    assert read_for_worker(encode(ask)) == ask


@pytest.mark.parametrize(("seconds", "read"), [(0.0, 0.0), (0.5, 0.5), (inf, FOREVER)])
def test_any_limit_of_a_call_or_a_tool_can_be_sent(seconds: float, read: float) -> None:
    ask = CallRequest(tool="t", arguments={}, idle=seconds, ceiling=seconds)
    tool = ToolJson(
        name="t",
        title="",
        description="",
        input_schema={"type": "object"},
        idle=seconds,
        ceiling=seconds,
    )
    assert read_for_worker(encode(ask)) == ask
    assert (ask.idle, ask.ceiling, tool.idle, tool.ceiling) == (read, read, read, read)


@pytest.mark.parametrize("seconds", [-1.0, nan, -inf])
def test_what_is_no_limit_is_refused(seconds: float) -> None:
    with pytest.raises(ValidationError):
        CallRequest(tool="t", arguments={}, idle=seconds, ceiling=1)


def test_an_announcement_arrives_as_it_was() -> None:
    said = worker("a", ready=None, labels={"site": "eu"}, running={"e" * 16: 1})
    assert read_announcement(encode(said)) == said
    assert said.total_running == 1
    assert said.total_ready == {}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON|Invalid JSON"),
        (b"[]", "^Input should be an object$"),
        (b'{"type": "call"}', "^call.tool: Field required$"),
        (b'{"type": "nothing"}', "does not match any of the expected tags"),
        (encode(Cancel(reason="why"))[:-1] + b', "more": 1}', "Extra inputs"),
    ],
)
def test_anything_else_is_refused_with_the_member(data: bytes, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        read_for_worker(data)
    with pytest.raises(ProtocolError):
        read_for_endpoint(data)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": "two words"}, "name: String should match"),
        ({"name": "t\n"}, "name: String should match"),
        ({"name": "tabs_open"}, "name: .*endpoints have that tool themselves"),
        ({"input_schema": {"type": "string"}}, 'input_schema: .*its root type is not "object"'),
        ({"annotations": {"readOnlyHint": {}}}, "annotations: .*readOnlyHint is of the wrong type"),
        ({"annotations": {"title": 1}}, "annotations: .*title is of the wrong type"),
    ],
)
def test_a_tool_with_which_clients_would_refuse_the_list_is_refused(
    wrong: dict[str, Any], why: str
) -> None:
    tool = {"name": "t", "title": "", "description": "", "input_schema": {"type": "object"}}
    answer = {"type": "tools", "tools": [{**tool, **wrong}], "patterns": []}
    with pytest.raises(ProtocolError, match=rf"^tools\.tools\[0\]\.{why}"):
        read_for_endpoint(json.dumps(answer).encode())


def test_a_tool_with_hints_arrives_as_it_was() -> None:
    hints = {"title": "Send", "readOnlyHint": True, "destructiveHint": None}
    tool = ToolJson(
        name="t", title="", description="", input_schema={"type": "object"}, annotations=hints
    )
    sent = Tools(tools=[tool], patterns=[])
    assert read_for_endpoint(encode(sent)) == sent


@pytest.mark.parametrize("data", [b"", b"[]", b'"text"', b"{"])
def test_what_is_not_an_announcement_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError) as refused:
        read_announcement(data)
    assert not isinstance(refused.value, VersionSkewError)


def test_another_version_is_refused_with_both() -> None:
    strange = json.dumps({"version": 7, "name": "w", "instance": "i", "opentabs": "2.0"}).encode()
    with pytest.raises(VersionSkewError) as skew:
        read_announcement(strange)
    assert "runs opentabs-py 2.0 (fleet protocol 7)" in str(skew.value)
    assert f"is opentabs-py {__version__} (fleet protocol {FLEET_VERSION})" in str(skew.value)
    assert (skew.value.name, skew.value.instance) == ("w", "i")


def test_a_digest_tells_two_builds_apart() -> None:
    one, other = (
        Tools(
            tools=[ToolJson(name="t", title="", description=text, input_schema={"type": "object"})],
            patterns=[],
        )
        for text in ("one", "other")
    )
    assert digest_of(one) == digest_of(one)
    assert digest_of(one) != digest_of(other)


def test_an_error_keeps_all_its_fields() -> None:
    failed = Failed(
        kind="tool",
        code="AUTH",
        message="Sign in.",
        category="auth",
        retryable=True,
        retry_after_ms=10.0,
        stack="at x",
        value={"a": None},
    )
    assert read_for_endpoint(encode(failed)) == failed


def test_a_worker_knows_the_caller_by_the_subject() -> None:
    subject = f"{Subjects('f').worker('w', 'a1')}.call.{'e' * 16}.{'c' * 32}"
    assert caller_of(subject) == ("e" * 16, "c" * 32)
    assert caller_of(f"{Subjects('f').worker('w', 'a1')}.drain") is None


@pytest.mark.parametrize(
    ("endpoint", "call"),
    [
        ("abc", "c" * 32),
        ("e" * 17, "c" * 32),
        ("E" * 16, "c" * 32),
        ("e" * 16, "c" * 31),
        ("e" * 16, f"{'c' * 32}.more"),
    ],
)
def test_a_worker_knows_no_caller_whose_id_it_could_not_announce(endpoint: str, call: str) -> None:
    assert caller_of(f"{Subjects('f').worker('w', 'a1')}.call.{endpoint}.{call}") is None


def test_two_fleets_share_no_subject() -> None:
    one, other = Subjects("one"), Subjects("other")
    assert {one.who, one.workers, one.endpoint("e")}.isdisjoint(
        {other.who, other.workers, other.endpoint("e")}
    )


def test_a_worker_may_receive_only_what_is_for_it() -> None:
    allowed = permissions("f", "worker", "w")
    assert "opentabs.f.worker.w.>" in allowed["subscribe"]
    assert not any(subject.startswith("opentabs.f.endpoint") for subject in allowed["subscribe"])
    assert not any(subject.startswith("opentabs.f.worker.") for subject in allowed["publish"])


def test_an_operator_may_drain_and_call_nothing_and_an_endpoint_call_and_drain_nothing() -> None:
    assert permissions("f", "operator")["publish"] == [
        Subjects("f").who,
        "opentabs.f.worker.*.*.drain",
    ]
    to_workers = [each for each in permissions("f", "endpoint")["publish"] if "worker" in each]
    assert to_workers == ["opentabs.f.worker.*.*.call.>", "opentabs.f.worker.*.*.beat.*"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (failures.worker_lost("w"), "WORKER_LOST"),
        (failures.invalid_worker_answer("w", "it sent nothing"), "FLEET_PROTOCOL"),
        (failures.not_linked("nats://h", sent=True), "FLEET_NOT_CONNECTED"),
    ],
)
def test_a_call_whose_end_is_unknown_may_have_run(error: ChainError, code: str) -> None:
    assert error.detail.code == code
    assert error.detail.category == "lost"
    assert not error.detail.retryable
    assert "may have run" in error.detail.message


@pytest.mark.parametrize("name", ["", "a.b", "*", ">", "a b", "A", "a" * 41])
def test_a_worker_is_not_named_as_a_subject_cannot_be(name: str) -> None:
    said = json.loads(encode(worker("a"))) | {"name": name}
    with pytest.raises(ProtocolError, match="name"):
        read_announcement(json.dumps(said).encode())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no", r"^An announcement is not JSON: .*[^.]\.$"),
        (b"[]", r"^An announcement is not valid: Input should be an object\.$"),
    ],
)
def test_one_sentence_says_what_is_not_an_announcement(data: bytes, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        read_announcement(data)


def test_an_endpoint_is_read_as_it_was_written_and_nothing_else_is() -> None:
    said = EndpointAnnouncement(
        version=FLEET_VERSION, endpoint="e" * 16, host="h", pid=1, running=2, waiting=3
    )
    assert read_endpoint(encode(said)) == said
    with pytest.raises(ProtocolError, match="endpoint"):
        read_endpoint(b'{"version": 1}')
    assert Subjects("one").endpoints != Subjects("other").endpoints
