"""How a session starts, as far as this needs no browser."""

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import psutil
import pytest

from opentabs_py import OpenTabs, stacks
from opentabs_py.browser.discovery import Attach
from opentabs_py.browser.launch import Planned
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import BrowserError, ConfigError
from opentabs_py.server.http.listen import bind
from opentabs_py.server.mcp.results import ERROR_META_KEY
from opentabs_py.session.browsers.browser import SessionBrowser
from opentabs_py.session.seams import Seams
from tests.waiting import PATIENT, until_all_wait

WATCHED_LAUNCH = """
import sys, anyio
from contextlib import asynccontextmanager
from opentabs_py import OpenTabs
from opentabs_py.session.seams import Seams

@asynccontextmanager
async def launch(planned):
    print("pydantic" in sys.modules)
    await planned()
    print("pydantic" in sys.modules)
    raise SystemExit
    yield

async def main():
    async with OpenTabs(_seams=Seams(launch=launch)):
        pass

anyio.run(main)
"""

# As in `load_sdk_soon`: no import may be left half done.
CANCELLED_IMPORT = """
import sys, anyio
from opentabs_py import OpenTabs

STARTUP = "opentabs_py.session.server"

async def start():
    async with OpenTabs(browser="none"):
        pass

async def main():
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        while STARTUP not in sys.modules:
            await anyio.sleep(0)
        print(sys.modules[STARTUP].__spec__._initializing)
        tasks.cancel_scope.cancel()
    print(sys.modules[STARTUP].__spec__._initializing)

anyio.run(main)
"""

# In its own process: a test in the same loop could not end a loop that spins.
CANCELLED = """
import sys, anyio
from opentabs_py import OpenTabs, tool
from opentabs_py.client import Client
from opentabs_py.config.settings import load_settings

@tool
def greet(name: str) -> str:
    "Greet somebody."
    return name

async def hold(context, up):
    async with context:
        up.set()
        await anyio.sleep_forever()

async def cancel(context):
    up = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold, context, up)
        await up.wait()
        tasks.cancel_scope.cancel()

def session():
    return OpenTabs(tools=[greet], settings=load_settings(port=0))

async def main():
    if sys.argv[1] == "session":
        await cancel(session())
    else:
        async with session() as tabs:
            await cancel(Client(tabs.mcp_url))
    print("left")

anyio.run(main)
"""


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def test_a_launch_begins_before_the_rest_of_a_session_is_loaded() -> None:
    command = [sys.executable, "-c", WATCHED_LAUNCH]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["False", "True"], run.stderr


async def test_what_is_to_be_loaded_while_browsers_start_holds_up_none_of_them() -> None:
    order: list[str] = []

    @asynccontextmanager
    async def launch(planned: Planned) -> AsyncGenerator[None]:
        order.append("a browser prepares to start")
        await planned()
        order.append("it starts")
        if order:  # always, but a generator has to contain a `yield`
            raise BrowserError("not today")
        yield

    session = OpenTabs(
        while_launching=lambda: order.append("the rest is loaded"),
        settings=load_settings(port=0),
        _seams=Seams(launch=launch),
    )
    with pytest.raises(BrowserError, match="not today"):
        async with session:
            pass

    assert order == ["a browser prepares to start", "the rest is loaded", "it starts"]


def test_a_start_that_is_cancelled_finishes_what_it_imports() -> None:
    command = [sys.executable, "-c", CANCELLED_IMPORT]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert run.stdout.split() == ["True", "False"], run.stderr


@pytest.mark.parametrize("held", ["session", "client"])
def test_a_task_that_is_cancelled_while_it_holds_a_session_or_a_client_ends(held: str) -> None:
    command = [sys.executable, "-c", CANCELLED, held]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert run.stdout.split() == ["left"], run.stderr


@pytest.mark.anyio
async def test_a_start_that_fails_leaves_no_driver_behind(tmp_path: Path) -> None:
    before = children()
    nowhere = load_settings(chromium=tmp_path / "chromium")
    with pytest.raises(BrowserError, match="which does not exist"):
        async with OpenTabs(settings=nowhere):
            raise AssertionError("it started")
    assert children() <= before  # those of other tests may end meanwhile


def test_without_a_fleet_and_without_metrics_nothing_of_them_is_loaded() -> None:
    modules = (
        "opentabs_py.cli.commands.serve",
        "opentabs_py.session.server",
        "opentabs_py.server.mcp.server",
    )
    code = "; ".join(["import sys", *(f"import {each}" for each in modules), "print(*sys.modules)"])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "opentabs_py.session.server" in loaded
    assert not {"nats", "prometheus_client", "opentabs_py.fleet"} & {*loaded}


def test_the_places_that_a_program_names_are_absolute() -> None:
    session = OpenTabs(plugins=["chat", "../mail"], browsers={"work": "profile"})
    here = Path.cwd()
    assert session._directories == [here / "chat", here.parent / "mail"]
    assert session._source.profiles == {"work": here / "profile"}


@pytest.mark.parametrize(
    "name", ["tools", "plugins", "args", "ignore_default_args", "relaunch_urls"]
)
def test_a_text_is_not_taken_for_a_list_of_characters(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name} must be a list: \['chat'\]"):
        OpenTabs(**{name: "chat"})  # type: ignore[arg-type]


def test_an_unknown_kind_of_browser_is_refused() -> None:
    with pytest.raises(ConfigError, match="browser is 'chrome', but must be"):
        OpenTabs(browser="chrome")  # type: ignore[arg-type]


def test_a_session_of_no_browsers_is_refused() -> None:
    with pytest.raises(ConfigError, match="browsers is 0, but must be at least 1"):
        OpenTabs(browsers=0)


async def test_a_tool_called_after_the_session_still_times_out() -> None:
    async def hang() -> None:
        await anyio.sleep_forever()

    session = OpenTabs(tools=[hang], settings=load_settings(idle=0.05))
    async with session:
        pass
    with anyio.fail_after(PATIENT):
        result = await session.call_tool("hang")
    assert (result.meta or {})[ERROR_META_KEY]["code"] == "TIMEOUT_IDLE"


@pytest.mark.parametrize("method", ["call", "call_tool", "start"])
async def test_a_call_without_a_running_server_says_how_to_run_one(method: str) -> None:
    with pytest.raises(RuntimeError, match="async with OpenTabs"):
        await getattr(OpenTabs(plugins=["chat"]), method)("chat_send")


async def test_a_call_after_the_session_says_that_it_has_ended() -> None:
    def greet() -> str:
        return "hello"

    tabs = OpenTabs(tools=[greet], browser="none", settings=load_settings(port=0))
    for _ in range(2):  # it can be entered again
        async with tabs:
            assert await tabs.call("greet") == "hello"
        with pytest.raises(RuntimeError, match="The session has ended"):
            await tabs.call("greet")


OUTSIDE = {"check_driver", "is_endpoint", "needs_browser", "on_tool_progress", "settings"}


async def _use(session: OpenTabs, name: str) -> None:
    """Get a property, or call a method with anything for its required arguments."""
    member = getattr(session, name)
    if callable(member):
        parameters = inspect.signature(member).parameters.values()
        needed = ["x" for each in parameters if each.default is each.empty]
        if inspect.isawaitable(result := member(*needed)):
            await result


async def test_whatever_needs_a_running_session_says_that_there_is_none() -> None:
    tabs = OpenTabs(browser="none", settings=load_settings(port=0))
    names = {each for each in dir(OpenTabs) if not each.startswith("_")} - OUTSIDE
    names |= {"mcp_url", "extension_dir"}
    for name in sorted(names):
        with pytest.raises(RuntimeError, match=r"The server is not running\. .*async with"):
            await _use(tabs, name)
    async with tabs:
        pass
    for name in sorted(names):
        with pytest.raises(RuntimeError, match=r"The session has ended\. .*async with"):
            await _use(tabs, name)


async def test_calls_of_a_session_that_is_entered_again_are_recorded_again() -> None:
    def greet() -> str:
        return "hello"

    tabs = OpenTabs(tools=[greet], browser="none", settings=load_settings(port=0))
    for _ in range(2):
        async with tabs:
            call = await tabs.start("greet")
            assert await call.result() == "hello"
            assert call.record is not None


async def test_a_call_whose_start_is_cancelled_does_not_run() -> None:
    ran: list[str] = []

    def pay() -> None:
        ran.append("pay")

    settings = load_settings(port=0, permissions={"default": "ask"})
    async with OpenTabs(tools=[pay], browser="none", settings=settings) as tabs:
        questions = tabs.internals.registry.gate.questions
        with questions.shown():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(tabs.start, "pay")
                await until_all_wait()
                [question] = questions.waiting
                tasks.cancel_scope.cancel()
            await until_all_wait()
            assert not questions.answer(question.id, "once", by="the test")
            assert not tabs.internals.tool_calls.running
    assert not ran


async def test_a_call_to_a_fleet_without_a_running_server_says_how_to_run_one() -> None:
    with pytest.raises(RuntimeError, match="async with OpenTabs"):
        await OpenTabs(nats="nats://127.0.0.1:1").call_tool("any")


@pytest.mark.parametrize("options", [{"browsers": 2}, {"browser": "none"}, {"browser": Attach()}])
def test_an_endpoint_of_a_fleet_uses_no_browser(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="has no plugins and no browsers"):
        OpenTabs(nats="nats://127.0.0.1:1", **options)


async def test_a_session_ends_although_a_browser_cannot_be_detached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_: SessionBrowser) -> None:
        raise RuntimeError("it is stuck")

    monkeypatch.setattr(SessionBrowser, "detach", fail)
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="stuck")):
        async with OpenTabs(browser="none", settings=load_settings(port=0)) as tabs:
            port = urlsplit(tabs.mcp_url).port
    assert port is not None
    with bind("127.0.0.1", port):
        pass


@pytest.mark.parametrize("name", ["mcp_url", "plugins", "internals", "tools"])
def test_what_a_server_has_says_without_one_how_to_run_it(name: str) -> None:
    with pytest.raises(RuntimeError, match="async with OpenTabs"):
        getattr(OpenTabs(plugins=["chat"]), name)


def test_a_server_has_no_other_names() -> None:
    assert not hasattr(OpenTabs(plugins=["chat"]), "tool_names")


async def test_an_extension_that_cannot_be_written_is_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "opentabs" / "extension").mkdir(parents=True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    in_the_way = tmp_path / "opentabs" / "extension" / "content"
    in_the_way.touch()
    why = f"^Cannot write {in_the_way}[^:]*: [A-Z][a-z ]+. The extension"
    with pytest.raises(BrowserError, match=why):
        async with OpenTabs(browser="none", settings=load_settings(port=0)):
            pytest.fail("it started")


# --- entering and leaving ---


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


def a_session() -> OpenTabs:
    return OpenTabs(tools=[greet], settings=load_settings(port=0))


async def test_a_session_can_be_entered_and_left_in_different_tasks() -> None:
    session = a_session()
    await asyncio.create_task(session.__aenter__())
    assert await session.call("greet", {"name": "Ada"}) == "Hello Ada"
    await asyncio.create_task(session.__aexit__(None, None, None))


async def test_a_session_that_is_running_is_not_entered_again() -> None:
    async with a_session() as session:
        with pytest.raises(RuntimeError, match="already running"):
            await session.__aenter__()
        assert await session.call("greet", {"name": "Ada"}) == "Hello Ada"


async def test_a_session_can_be_entered_again_after_it_has_ended() -> None:
    session = a_session()
    for _ in range(2):
        async with session:
            assert await session.call("greet", {"name": "Ada"}) == "Hello Ada"


async def test_an_error_of_the_session_s_own_cancels_its_body_and_is_raised() -> None:
    async def fail() -> None:
        raise ValueError("a bug")

    async def use() -> None:
        async with a_session() as session:
            session.internals.tasks.start_soon(fail)
            await anyio.sleep_forever()

    with pytest.raises(ExceptionGroup) as caught, anyio.fail_after(PATIENT):
        await use()
    assert isinstance(stacks.innermost(caught.value), ValueError)
    await anyio.lowlevel.checkpoint()  # nothing of the cancellation is left


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 10, 20])
async def test_a_session_that_is_cancelled_while_it_starts_leaves_nothing_behind(
    steps: int,
) -> None:
    before, session = asyncio.all_tasks(), a_session()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.__aenter__)
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert asyncio.all_tasks() == before
    async with session:  # and it can start again
        pass
