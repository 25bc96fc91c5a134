"""Constants that are stated in Python and again in JavaScript or docs are equal."""

import re
from math import prod
from pathlib import Path

import pytest

from opentabs_py.bridge.tab_requests import OPEN_WITHIN
from opentabs_py.core import chunks, failures, protocol
from opentabs_py.core.page_tools import OVER_LIMITS
from opentabs_py.core.plugin_names import PAGE
from opentabs_py.core.progress import MESSAGE_MAX
from opentabs_py.core.protocol import PageToolsParams, RegisteredTool
from opentabs_py.testing.expectations.breaches import LATE_REPORT

ROOT = Path(__file__).parents[2]
CONSTANT = re.compile(r"(?:const|static) #?([A-Z_]+) = (\d[\d_]*(?: \* \d[\d_]*)*);")


def constants(path: str) -> dict[str, int]:
    """Return the numeric constants of a JavaScript file."""
    found = CONSTANT.findall((ROOT / path).read_text(encoding="utf-8"))
    return {name: prod(int(factor) for factor in value.split(" * ")) for name, value in found}


def limits(model: type[RegisteredTool | PageToolsParams], name: str) -> int:
    """Return the maximum length of a member of a message."""
    found = model.model_json_schema()["properties"][name]
    length: int = found["maxItems" if "maxItems" in found else "maxLength"]
    return length


def test_the_relay_cuts_messages_as_the_server_does() -> None:
    relay = constants("extension/content/chunks.js")
    assert (relay["WHOLE"], relay["CHUNK"]) == (chunks.WHOLE, chunks.CHUNK)


def test_the_relay_and_the_worker_find_the_parts_of_a_chunk() -> None:
    relay = constants("extension/content/chunks.js")
    router = constants("extension/background/router.js")
    document = "d" * router["DOCUMENT_ID"]
    first, *_ = chunks.split("x" * (chunks.WHOLE + 1), document, 1)
    assert first.startswith(f"~{document}0")
    assert first[relay["HEADER"] - 1 :].strip("x") == "+"
    assert relay["HEADER"] == chunks.HEADER


def test_a_page_reports_no_tools_that_the_server_refuses() -> None:
    page = constants("extension/content/page_tools.js")
    assert page["MOST"] == limits(PageToolsParams, "tools")
    assert page["LONGEST_NAME"] == limits(RegisteredTool, "name")
    assert page["LONGEST_TITLE"] <= limits(RegisteredTool, "title")
    assert page["LONGEST_TEXT"] <= limits(RegisteredTool, "description")


def test_the_extension_gives_up_opening_a_tab_when_docs_say_so_and_before_the_server() -> None:
    milliseconds = constants("extension/background/own_tabs.js")["BLANK_WITHIN"]
    documented = re.search(
        r"`TAB_NOT_OPENED` .* within (\d+) s", (ROOT / "docs/architecture.md").read_text()
    )
    assert documented is not None
    assert int(documented[1]) == milliseconds / 1000 < OPEN_WITHIN


def test_the_page_refuses_calls_in_the_words_of_the_server() -> None:
    runtime = (ROOT / "adapter_js/runtime.js").read_text(encoding="utf-8")
    gone = failures.page_tool_gone().detail
    assert f'"{gone.message}"' in runtime
    assert gone.retry_after == constants("adapter_js/runtime.js")["LISTED_WITHIN"] / 1000
    [advice] = re.findall(r'const ask = "(.+)";', runtime)
    assert failures.not_ready(
        "chat", "https://chat.example/", "signed out"
    ).detail.message.endswith(advice)
    assert f'PAGE_TOOLS = "{PAGE}"' in runtime


def test_what_is_said_of_a_page_with_too_many_tools_is_what_limits_them() -> None:
    page = constants("extension/content/page_tools.js")
    kilobytes = page["LONGEST_SCHEMA"] // 1024, page["LONGEST_LIST"] // 1024
    named = tuple(map(int, re.findall(r"\d+", OVER_LIMITS)))
    assert named == (page["MOST"], page["LONGEST_NAME"], *kilobytes)


def test_the_kit_knows_the_runtimes_warning_of_late_progress() -> None:
    runtime = (ROOT / "adapter_js/runtime.js").read_text("utf-8")
    assert runtime.count(f'"{LATE_REPORT}"') == 1


@pytest.mark.parametrize("path", ["adapter_js/runtime.js", "extension/content/outbox.js"])
def test_a_progress_message_has_the_same_length_in_both_languages(path: str) -> None:
    assert constants(path)["MESSAGE_MAX"] == MESSAGE_MAX


def test_each_close_code_is_documented() -> None:
    rows = re.findall(
        r"^\| (4\d{3}) \|", (ROOT / "docs/protocol.md").read_text("utf-8"), re.MULTILINE
    )
    codes = [code for name, code in vars(protocol).items() if name.startswith("CLOSE_")]
    assert [*map(int, rows)] == sorted(codes)
