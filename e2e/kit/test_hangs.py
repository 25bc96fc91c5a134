"""The report of a failed test says why a tool hangs."""

import re

import pytest

from e2e.kit.runs import INI, KitRun, run
from opentabs_py.plugins.scaffold import scaffold

TOOL = """\
import { defineTool, waitForSelector } from "@opentabs-dev/plugin-sdk";
import { z } from "zod";

export const hello = defineTool({
  name: "hello",
  description: "Hangs",
  input: z.object({ how: z.string() }),
  output: z.object({}),
  async handle({ how }, context) {
    const signal = context?.signal;
    const forEver = { timeout: Infinity };
    const ways = {
      response: () => fetch("/never?key=secret", { signal }),
      element: async () => {
        await waitForSelector("#never", { ...forEver, signal });
      },
      late: () => new Promise((resolve) => signal.addEventListener("abort", resolve)),
      deaf: () => waitForSelector("#never", forEver),
      busy: () => {
        for (;;);
      },
    };
    await ways[how]();
    return {};
  },
});
"""
TESTS = """\
import contextlib

import pytest
from opentabs_py import CallTimeoutError


@pytest.fixture(autouse=True)
def site(opentabs, page):
    page.route("**/never*", lambda route: None)
    opentabs.open_start_page()


@pytest.mark.opentabs(idle=0.5)
@pytest.mark.parametrize("how", ["response", "deaf", "busy"])
def test_hangs(opentabs, how):
    opentabs.call("chat_hello", how=how)


@pytest.mark.opentabs(idle=0.5)
def test_hangs_again(opentabs):
    with contextlib.suppress(CallTimeoutError):
        opentabs.call("chat_hello", how="element")
    opentabs.call("chat_hello", how="late")


def test_fails_meanwhile(opentabs, page):
    with page.expect_request("**/never*"):
        opentabs.start("chat_hello", how="response")
    assert page.title() == "another"
"""
WAITED = """\
  It waited here:
(?:      at .*
)+      at async Object.element \\(src/tools/hello.js:15:9\\)
(?:.*
)*  > 15 \\|         await waitForSelector\\("#never", { ...forEver, signal }\\);
(?:.*
)*chat_hello \\(\\w{8}\\):
  It returned .* later\\. Let it stop when context\\.signal fires\\.
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    project = tmp_path_factory.mktemp("hangs")
    (project / "pytest.ini").write_text(INI)
    chat = project / "chat"
    scaffold("chat", chat, language="js")
    (chat / "src" / "tools" / "hello.js").write_text(TOOL)
    (chat / "tests" / "test_chat.py").write_text(TESTS)
    return run(chat)


def why(ran: KitRun, test: str) -> str:
    report = ran[test].properties["opentabs_report"]
    return re.split(r"OpenTabs: why tools hang\nchat_hello \(\w{8}\):\n", report)[1] + "\n"


def test_a_request_without_a_response_is_named(ran: KitRun) -> None:
    for test in ("test_hangs[chromium-response]", "test_fails_meanwhile[chromium]"):
        assert re.search(r"  No complete response: GET http://.*/never(\n|$)", why(ran, test))
        assert "secret" not in why(ran, test)


def test_the_line_in_which_the_tool_waited_is_shown(ran: KitRun) -> None:
    assert re.match(WAITED, why(ran, "test_hangs_again[chromium]"))


def test_a_tool_that_does_not_pass_on_its_signal_is_advised_to(ran: KitRun) -> None:
    deaf = why(ran, "test_hangs[chromium-deaf]")
    assert deaf.startswith("  It runs on, although context.signal has fired"), ran.output


def test_a_page_that_is_busy_is_named(ran: KitRun) -> None:
    assert why(ran, "test_hangs[chromium-busy]").startswith("  Its page does not answer")
