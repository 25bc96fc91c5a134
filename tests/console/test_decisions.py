"""A person's decisions in the console, and requests that are refused."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.on_disk import write_plugin
from opentabs_py.calling.call import CallOrigin
from opentabs_py.consent.reviews import Reviews
from opentabs_py.console import decisions
from opentabs_py.errors import CallError, CallRefusedError
from opentabs_py.plugins.load import load_plugin
from tests.console.served import OURS, ServedConsole
from tests.console.test_watch import Reader, rows
from tests.fakes import FakeBridge
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


async def post(served: ServedConsole, path: str, **body: Any) -> tuple[int, Any]:
    async with served.browser() as client:
        answer = await client.post(f"/console/api/{path}", json=body, headers=OURS)
        return answer.status_code, answer.json()


async def test_a_question_is_shown_while_a_page_looks_and_its_answer_lets_the_call_run() -> None:
    served = ServedConsole()
    served.registry.gate.set_rules({"chat": "ask"})
    with pytest.raises(CallRefusedError, match="no way to ask"):
        await served.tool_calls.call("chat_send", {})
    values: list[Any] = []

    async def call() -> None:
        values.append(await served.tool_calls.call("chat_send", {"text": "hi"}))

    reader = Reader(served)
    with served.watch.watching(), anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call_when_seen, served, call)
            event = await reader.read_until(lambda event: bool(rows(event, "questions")))
            [question] = rows(event, "questions")
            assert question["tool"] == "chat_send"
            assert '"hi"' in question["arguments"]
            assert served.clock.now < question["until"] <= served.clock.now + 120
            wrong = await post(served, "answer", id=question["id"], answer="session")
            assert wrong == (200, {"counts": False, "note": ""})
            right = await post(served, "answer", id=question["id"], answer="once")
            assert right == (200, {"counts": True, "note": ""})
        event = await reader.read_until(lambda event: "questions" in event)
    assert event["questions"]["gone"] == [question["id"]]
    assert values == [{"sent": True}]


async def call_when_seen(served: ServedConsole, call: Any) -> None:
    while not served.registry.gate.questions.can_be_seen:
        await anyio.lowlevel.checkpoint()
    await call()


async def test_a_user_ends_a_running_call_and_its_caller_learns_who_did() -> None:
    bridge = FakeBridge()
    bridge.hangs = True
    served = ServedConsole(bridge)
    failures: list[CallError] = []

    async def call() -> None:
        try:
            await served.tool_calls.call("chat_send", {}, call_id="mine")
        except CallError as error:
            failures.append(error)

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await bridge.called.wait()
            assert await post(served, "cancel", call="other") == (200, {"counts": False})
            assert await post(served, "cancel", call="mine") == (200, {"counts": True})
    [failure] = failures
    assert failure.detail.code == "CANCELLED"
    assert "in the console" in failure.detail.message


async def test_a_permission_is_used_at_once_and_a_wrong_one_is_refused() -> None:
    served = ServedConsole()
    assert await post(served, "permission", rule="chat.send", permission="off") == (
        200,
        {"note": ""},
    )
    with pytest.raises(CallRefusedError):
        await served.tool_calls.call("chat_send", {}, origin=CallOrigin(allowed_by="console"))
    status, answer = await post(served, "permission", rule="a b", permission="off")
    assert (status, "not a valid name" in answer["error"]) == (400, True)
    status, answer = await post(served, "permission", rule="chat", permission="maybe")
    assert (status, "permission" in answer["error"]) == (400, True)


class Reviewed(ServedConsole):
    """A console with one plugin, which its user has not reviewed."""

    def __init__(self, scratch: Path) -> None:
        super().__init__()
        directory = write_plugin(scratch / "notes", tools=["version"])
        self.adapter = directory / "dist" / "adapter.iife.js"
        self.plugins.reviews = Reviews(scratch / "reviews")
        self.load()

    def load(self) -> None:
        self.plugins.plugins[:] = [load_plugin(self.adapter.parents[1])]

    async def look(self) -> Any:
        async with self.browser() as client:
            return (await client.get("/console/api/reviews/notes")).json()

    async def approve(self, build: Any) -> tuple[int, Any]:
        return await post(self, "review", plugin="notes", digest=build["digest"])


async def test_a_build_is_approved_only_as_it_was_looked_at(tmp_path: Path) -> None:
    served = Reviewed(tmp_path)
    build = await served.look()
    assert (build["approved"], build["changes"]) == (None, [])
    assert {each["name"] for each in build["files"]} == {"adapter.iife.js", "declared.json"}
    async with served.browser() as client:
        assert (await client.get("/console/api/reviews/nope")).status_code == 404

    served.adapter.write_text(served.adapter.read_text() + "\n// more\n")
    served.load()
    status, answer = await served.approve(build)
    assert (status, "changed since you reviewed" in answer["error"]) == (409, True)
    assert served.plugins.reviews.approvals() == {}

    build = await served.look()
    assert await served.approve(build) == (200, {})
    assert served.plugins.reviews.approvals()["notes"].digest == build["digest"]
    assert served.plugins.reloads == 1

    served.adapter.write_text(served.adapter.read_text() + "// and more\n")
    served.load()
    build = await served.look()
    assert "+// and more" in build["changes"]
    assert build["approved"]["version"] == served.plugins.plugins[0].manifest.version


async def test_a_review_shows_code_as_it_runs(tmp_path: Path) -> None:
    served = Reviewed(tmp_path)
    assert await served.approve(await served.look()) == (200, {})
    tricks = "\nif (x) /* \u202e } \u2066 */ f();\r\n// \x85check();\u3164\n"
    served.adapter.write_bytes(served.adapter.read_bytes() + tricks.encode())
    served.load()
    build = await served.look()
    shown = ["if (x) /* \\u202e } \\u2066 */ f();", "// \\u0085check();\\u3164"]
    [text] = [each["text"] for each in build["files"] if each["name"] == "adapter.iife.js"]
    assert text.splitlines()[-2:] == shown
    assert [each for each in build["changes"] if each[1:] in shown] == [
        f"+{each}" for each in shown
    ]


async def test_a_review_says_how_much_of_a_build_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "LONGEST_SOURCE", 1000)
    served = Reviewed(tmp_path)
    build = await served.look()
    assert build["changesLeft"] == 0
    assert await served.approve(build) == (200, {})
    source = served.adapter.read_text() + "\n" + "// more\n" * 3000 + "x" * 1000
    served.adapter.write_text(source)
    served.load()
    build = await served.look()
    assert len(build["changes"]) == decisions.MOST_LINES
    assert build["changesLeft"] > 1000
    left = {each["name"]: each["left"] for each in build["files"]}
    assert left["adapter.iife.js"] == len(source) - 1000
    texts = {each["name"]: each["text"] for each in build["files"]}
    assert texts["adapter.iife.js"] == source[:1000]
    monkeypatch.setattr(decisions, "MOST_LINES", 10_000)
    build = await served.look()
    assert build["changesLeft"] == 0
    assert build["changes"][-1].endswith("x… (601 more characters)")
