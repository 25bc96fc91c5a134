"""A hostile page can neither read the channel nor forge messages on it."""

import json
import re
from collections.abc import Callable
from typing import Any

import anyio

from e2e.chain import HOLD, Tab

FORGE = """
() => {
  const names = ["opentabs:ready", "opentabs:offer", "opentabs:result", "result"];
  for (const word of probe.spiedWords ?? []) {
    names.push(word);
  }
  const id = "0".repeat(32);
  for (const name of names) {
    const result = `tool.result ${id}"FORGED"`;
    for (const text of [result, `tool.progress ${id}{"progress":666}`, JSON.stringify({
      jsonrpc: "2.0", method: "tool.result", params: { callId: id, seq: 0, value: "FORGED" } })]) {
      document.dispatchEvent(new CustomEvent(name, { detail: text, cancelable: true }));
      window.postMessage({ type: name, detail: text }, "*");
    }
  }
}
"""


async def test_a_page_that_forges_results_changes_nothing(tab: Tab) -> None:
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{"wait": 300}, {"report": {"progress": 1}}], "true")
        await tab.page.evaluate(FORGE)
        await running.wait()

    assert running.value == {"key": "true", "result": "true"}
    assert [report.progress for report in running.reports] == [1]


async def test_a_page_that_patched_everything_sees_no_name_of_the_channel(
    open_tab: Callable[..., Any],
) -> None:
    tab: Tab = await open_tab("hostile")

    steps = [{"report": {"progress": 1, "message": "SENT"}}, {"wait": 20}] * 3
    value = await tab.call("run", {"key": "spied", "steps": steps, "result": "SECRET"})

    spied = json.loads(await tab.page.evaluate("JSON.stringify(spied)"))
    assert value["result"] == "SECRET"
    assert spied, "the page spies on nothing, so this proves nothing"
    # The channel's names, and call ids, are runs of 32 hex digits; nothing else here is.
    assert [text for text in spied if re.search("[0-9a-f]{32}", text)] == []


async def test_a_page_cannot_write_another_message_into_its_result(
    open_tab: Callable[..., Any],
) -> None:
    victim: Tab = await open_tab(host="localhost")
    hostile: Tab = await open_tab()
    await hostile.page.evaluate(
        """() => {
          Object.prototype.toJson = () =>
            '0},"method":"tabs.changed","params":{"tabIds":[],"documents":[]';
        }"""
    )
    async with anyio.create_task_group() as group:
        running = await victim.start(group, [HOLD], "victim")
        assert await hostile.call("echo", {"value": 1}) == {"value": 1}
        await victim.release("victim")
        await running.wait()

    assert running.value == {"key": "victim", "result": "victim"}


async def test_replayed_messages_are_ignored(open_tab: Callable[..., Any]) -> None:
    tab: Tab = await open_tab("hostile")
    await tab.call("run", {"key": "first"})

    await tab.page.evaluate(
        """() => {
          for (const text of [...spied]) {
            const [, type, detail] = /^\\w+ (\\S+) ?(.*)$/s.exec(text) ?? [];
            if (type) {
              document.dispatchEvent(new CustomEvent(type, { detail, cancelable: true }));
            }
          }
        }"""
    )

    assert (await tab.call("run", {"key": "second"}))["key"] == "second"
    assert await tab.page.evaluate("probe.runs") == {"first": 1, "second": 1}
