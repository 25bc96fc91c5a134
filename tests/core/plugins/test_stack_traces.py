"""The stack traces of page tools, mapped to the plugin's own source."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from opentabs_py.core.plugins.stack_traces import (
    Origin,
    SourceMap,
    readable_positions,
    readable_stack,
)

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
ADAPTER = f"chrome-extension://{'a' * 32}/adapters/chat-0123.js"
RUNTIME = f"chrome-extension://{'a' * 32}/content/runtime.js"
SOURCE = 'export function send() {\n  const row = find("#row");\n  return row.text;\n}\n'


def vlq(value: int) -> str:
    bits = (-value << 1 | 1) if value < 0 else value << 1
    text = ""
    while True:
        digit, bits = bits & 31, bits >> 5
        text += DIGITS[digit | (32 if bits else 0)]
        if not bits:
            return text


def mappings(lines: list[list[tuple[int, ...]]]) -> str:
    """Write mappings: for each line, segments of (column[, source, line, column])."""
    before = [0, 0, 0]
    groups: list[str] = []
    for line in lines:
        at, segments = 0, list[str]()
        for column, *origin in line:
            segments.append(vlq(column - at) + "".join(map(vlq, map(int.__sub__, origin, before))))
            at, before = column, origin or before
        groups.append(",".join(segments))
    return ";".join(groups)


def a_map(lines: list[list[tuple[int, ...]]], **more: Any) -> SourceMap:
    sources = {"sources": ["../src/send.ts", "zod/index.js"], "sourcesContent": [SOURCE, "a\n"]}
    return SourceMap(
        json.dumps({"version": 3, "mappings": mappings(lines), **sources, **more}).encode()
    )


SEND = a_map([[], [(0, 0, 0, 0), (20, 0, 2, 9), (40, 1, 0, 0)]])


def test_a_frame_names_the_line_of_the_source_and_shows_it() -> None:
    stack = (
        "TypeError: Cannot read properties of null (reading 'text')\n"
        f"    at send ({ADAPTER}:2:25)\n"
        f"    at async Object.handle ({ADAPTER}:2:45)\n"
        f"    at async run ({RUNTIME}:228:42)"
    )
    assert readable_stack(stack, SEND) == (
        "TypeError: Cannot read properties of null (reading 'text')\n"
        "    at send (src/send.ts:3:10)\n"
        "    at async Object.handle (zod/index.js:1:1)\n"
        "\n"
        "  1 | export function send() {\n"
        '  2 |   const row = find("#row");\n'
        "> 3 |   return row.text;\n"
        "    |          ^\n"
        "  4 | }"
    )


def test_the_source_shown_is_the_plugins_own_though_a_package_threw() -> None:
    stack = f"ZodError: no\n    at parse ({ADAPTER}:2:45)\n    at {ADAPTER}:2:25"
    shown = readable_stack(stack, SEND)
    assert "    at parse (zod/index.js:1:1)\n    at src/send.ts:3:10\n" in shown
    assert "> 3 |   return row.text;" in shown


def test_in_any_text_positions_in_an_adapter_are_those_of_its_source() -> None:
    other = ADAPTER.replace("/chat-", "/mail-box-")
    text = (
        f'chat error: [{{"stack":"Error\\n    at send ({ADAPTER}:2:25)\\n    at {ADAPTER}:9:9"}}]'
    )

    shown = readable_positions(f"{text} {other}:2:25 {RUNTIME}:1:2", {"chat": SEND}.get)

    assert shown == (
        'chat error: [{"stack":"Error\\n    at send (src/send.ts:3:10)\\n'
        f'    at {ADAPTER}:9:9"}}] {other}:2:25 {RUNTIME}:1:2'
    )


def test_without_a_source_map_frames_name_the_built_adapter() -> None:
    stack = f"Error: no\n    at send ({ADAPTER}:2:25)\n    at run ({RUNTIME}:1:1)"
    assert readable_stack(stack) == "Error: no\n    at send (dist/adapter.iife.js:2:25)"


def test_frames_of_the_page_stay_and_a_message_of_several_lines_too() -> None:
    stack = "Error: first\nsecond\n    at cb (https://chat.example/app.js:1:2)"
    assert readable_stack(stack, SEND) == stack


def test_causes_keep_their_messages_and_frames() -> None:
    stack = (
        "ToolError: Cannot send\nthe message\n"
        f"    at send ({ADAPTER}:2:25)\n"
        f"    at run ({RUNTIME}:1:1)\n"
        "[cause]: TypeError: Failed to fetch\n"
        f"    at parse ({ADAPTER}:2:45)\n"
        f"    at run ({RUNTIME}:1:1)\n"
        "[cause]: offline"
    )
    assert readable_stack(stack, SEND).startswith(
        "ToolError: Cannot send\nthe message\n"
        "    at send (src/send.ts:3:10)\n"
        "[cause]: TypeError: Failed to fetch\n"
        "    at parse (zod/index.js:1:1)\n"
        "[cause]: offline\n"
        "\n"
        "  1 | export function send() {\n"
    )


def test_the_source_shown_is_that_of_a_cause_if_no_other_is_the_plugins() -> None:
    stack = f"Error: no\n    at parse ({ADAPTER}:2:45)\n[cause]: Error: why\n    at {ADAPTER}:2:25"
    assert "> 3 |   return row.text;" in readable_stack(stack, SEND)


def test_other_lines_after_the_first_frame_are_left_out() -> None:
    stack = "Error: no\n    at cb (https://chat.example/app.js:1:2)"
    assert readable_stack(f"{stack}\n    at new Promise (<anonymous>)\nmore") == stack


def test_each_cause_is_shortened() -> None:
    stack = f"Error: {'a' * 1000}\n    at a:1:2\n[cause]: Error: {'b' * 1000}\n    at b:1:2"
    shown = readable_stack(stack)
    assert len(shown) < 1100
    assert "\n[cause]: Error: bbb" in shown
    assert shown.endswith("\n    at b:1:2")


def test_a_source_that_the_map_does_not_hold_is_named_without_its_lines() -> None:
    shown = readable_stack(
        f"Error: no\n    at send ({ADAPTER}:2:25)",
        a_map([[], [(0, 0, 2, 9)]], sourcesContent=[None, None]),
    )
    assert shown == "Error: no\n    at send (src/send.ts:3:10)"


@pytest.mark.parametrize(
    "stack", ["", "no frames", "    at ", "    at x (:1:2)", "    at a:1:2" * 500]
)
def test_a_stack_that_a_page_made_up_is_survived(stack: str) -> None:
    assert len(readable_stack(stack, SEND)) <= max(len(stack), 600)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"mappings": 1, "sources": []}'])
def test_an_invalid_source_map_is_refused(content: bytes) -> None:
    with pytest.raises(ValidationError):
        SourceMap(content)


@pytest.mark.parametrize(
    "text", ["!!!", "A", "AAAA,,;;", "gggggggggggggggggggg", "AAA9AAAA", "AAAD"]
)
def test_broken_mappings_lead_nowhere_or_somewhere_but_raise_nothing(text: str) -> None:
    content = {"mappings": text, "sources": ["../a.ts"], "sourcesContent": ["let a;\n"]}
    broken = SourceMap(json.dumps(content).encode())
    readable_stack(f"Error\n    at f ({ADAPTER}:1:9)", broken)


def test_the_map_is_decoded_once() -> None:
    decoded = a_map([[], [(0, 0, 0, 0), (20, 0, 2, 9)]])
    assert decoded.find((1, 0)) == Origin(0, 0, 0)
    decoded._mappings = ""
    assert decoded.find((1, 24)) == Origin(0, 2, 9)


@pytest.mark.parametrize("position", [(0, 0), (2, 0), (9**9, 9**9), (1, 4), (1, -1)])
def test_a_position_before_the_first_segment_or_on_another_line_is_unknown(
    position: tuple[int, int],
) -> None:
    assert a_map([[], [(5, 0, 0, 0)]]).find(position) is None


def test_from_a_number_on_that_is_too_large_the_map_is_broken() -> None:
    broken = a_map([[(0, 0, 1, 2), (8, 0, 2**31, 2)], [(0, 0, 0, 0)]])
    assert broken.find((0, 9)) == Origin(0, 1, 2)
    assert broken.find((1, 0)) is None


SEGMENT = st.tuples(st.integers(0, 1), st.integers(0, 3000), st.integers(0, 500))
LINES = st.lists(st.dictionaries(st.integers(0, 5000), SEGMENT, max_size=6), max_size=6)


@given(LINES)
def test_every_position_leads_to_the_last_segment_that_begins_before_it(
    lines: list[dict[int, tuple[int, int, int]]],
) -> None:
    written: list[list[tuple[int, ...]]] = [
        [(at, *line[at]) for at in sorted(line)] for line in lines
    ]
    wanted = {(n, at + 1): Origin(*line[at]) for n, line in enumerate(lines) for at in line}
    for number, line in enumerate(lines):
        for at in line:
            if at + 1 in line:
                wanted[number, at + 1] = Origin(*line[at + 1])
    source_map = a_map(written)
    assert {each: source_map.find(each) for each in wanted} == wanted
