"""The page that shows a trace; e2e/calls/test_trace.py tests its behaviour in a browser."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from opentabs_py.core.trace.record import LogMark, ProgressMark
from opentabs_py.errors import ErrorDetail
from opentabs_py.tracing.html import VIEWER, to_html
from tests.tracing.examples import ALL, LOST, REFUSED, STARTED, SUCCEEDED, TIMED_OUT, TOOL_FAILED

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>&\u2028{{style}}"


def data_of(page: str) -> dict[str, Any]:
    (block,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    data: dict[str, Any] = json.loads(block)
    return data


def call_of(page: str) -> dict[str, Any]:
    (call,) = data_of(page)["calls"]
    return dict(call)


def model() -> str:
    return (VIEWER / "model.js").read_text(encoding="utf-8")


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = to_html(ALL, title="t")
    links = re.findall(r"""(?:src|href|action)=["']?([^"'\s>]+)|url\(([^)]*)\)|@import""", page)
    assert links == [("data:,", "")]
    assert not re.findall(r"\bfetch\(|XMLHttpRequest|\bimport\(", page)


def test_its_policy_lets_its_own_scripts_and_style_run_and_nothing_else() -> None:
    page = to_html(ALL, title="t")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    inline = [*re.findall(r"<script>(.*?)</script>", page, re.DOTALL)]
    inline += re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in inline}
    assert len(inline) == 2
    assert hashes == allowed
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert " style=" not in page.replace("{{style}}", "")
    assert not re.findall(r"\son\w+=", page.split("<script", 1)[0])


def test_what_a_page_wrote_is_data_and_ends_no_script() -> None:
    record = replace(
        TIMED_OUT,
        name=HOSTILE,
        url=HOSTILE,
        error=ErrorDetail(HOSTILE, HOSTILE, HOSTILE),
        progress=(ProgressMark(0.1, 0, message=HOSTILE),),
        logs=(LogMark(0.1, "info", HOSTILE),),
        arguments=HOSTILE,
        result=HOSTILE,
    )
    page, tame = to_html([record], title=HOSTILE), to_html([TIMED_OUT], title="t")
    assert page.count("<script") == tame.count("<script")
    assert page.count("</script") == tame.count("</script")
    assert "<img" not in page
    call = call_of(page)
    assert call["name"] == call["url"] == call["error"]["message"] == HOSTILE
    assert call["progress"][0]["message"] == call["logs"][0]["message"] == HOSTILE
    assert data_of(page)["title"] == HOSTILE.replace("\u2028", " ")


def test_calls_are_in_order_of_their_start_in_milliseconds_since_the_first() -> None:
    data = data_of(to_html([LOST, TIMED_OUT, SUCCEEDED], title="t", cut=1))
    assert [call["at"] for call in data["calls"]] == [0, 1000, 2000]
    assert [call["outcome"] for call in data["calls"]] == ["succeeded", "timed_out", "lost"]
    assert (data["started"], data["cut"]) == (STARTED, 1)


def test_a_call_has_its_hops_and_marks_on_one_axis() -> None:
    call = call_of(to_html([TIMED_OUT], title="t"))
    assert call["ms"] == 2500
    first, *_, last = call["hops"]
    assert first == {
        "hop": "server", "carrier": "server", "start": 0, "ms": 0.25, "unfinished": False,
    }  # fmt: skip
    assert (last["hop"], last["unfinished"]) == ("tool", True)
    assert last["start"] + last["ms"] == pytest.approx(2500)
    assert call["progress"] == [{"at": 500, "progress": 1, "total": 3, "message": "page 1"}]
    assert [link["boot"] for link in call["links"]] == ["boot-1", None, "boot-2"]
    assert (call["restarts"], call["dropped"]) == (1, 12)
    assert call["left"] == {"idle": 0.0, "ceiling": 2.5}
    assert call["reached"] == "page"


def test_a_call_whose_client_was_stamped_begins_there() -> None:
    record = SUCCEEDED.with_stamps(
        {"client.sent": STARTED - 0.05, "client.received": STARTED + 1.25}
    )
    call = call_of(to_html([record], title="t"))
    assert (call["at"], call["ms"]) == (-50, 1300)
    assert call["progress"][0]["at"] == 450


def test_a_call_that_was_never_sent_has_no_timers() -> None:
    call = call_of(to_html([REFUSED], title="t"))
    assert (call["left"], call["tab"], call["progress"]) == (None, None, [])


def test_an_error_has_the_fields_that_the_viewer_declares() -> None:
    declared = re.search(r"@property \{\{([^}]*)\} \| null\} error", model())
    assert declared is not None
    names = re.findall(r"(\w+): ", declared[1])
    error = call_of(to_html([TOOL_FAILED], title="t"))["error"]
    assert sorted(error) == sorted(names)
    assert error["retryAfterMs"] == 1500


def test_a_trace_without_calls_still_has_a_page() -> None:
    assert data_of(to_html([], title="t"))["calls"] == []
