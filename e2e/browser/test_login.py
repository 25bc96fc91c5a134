"""Sign in once, in a window; tests and headless runs then start signed in."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from e2e.browser.test_driver import driver_in
from e2e.chain import PROBE
from e2e.processes import descendants
from e2e.waiting import PATIENT
from opentabs_py.browser.login import LOOK_AGAIN
from opentabs_py.browser.signed_in import read_sign_in, sign_ins
from opentabs_py.config.settings import load_settings
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs

OPENTABS = [sys.executable, "-m", "opentabs_py"]
TEST = """
import pytest

@pytest.fixture(scope="session")
def opentabs_plugins():
    return [{plugin!r}]

@pytest.mark.opentabs(signed_in="work")
def test_signed_in(page, opentabs):
    page.goto({url!r})
    assert page.inner_text("body") == "user=ada"
    assert page.evaluate("localStorage.theme") == "dark"

def test_signed_out(page, opentabs):
    page.goto({url!r})
    assert page.inner_text("body") == ""
    assert page.evaluate("localStorage.theme") is None
"""


@pytest.fixture(scope="module")
async def account() -> AsyncGenerator[str]:
    """The address of a site where visitors sign in at /sign-in."""

    async def page(request: Request) -> HTMLResponse:
        cookies = "; ".join(f"{name}={value}" for name, value in request.cookies.items())
        return HTMLResponse(f"<!doctype html><title>page</title><body>{cookies}")

    async def sign_in(_request: Request) -> HTMLResponse:
        script = "<script>localStorage.theme = 'dark'</script>"
        answer = HTMLResponse(f"<!doctype html><title>in</title>{script}")
        answer.set_cookie("user", "ada")  # a session cookie: it ends with the browser
        return answer

    listener = bind("127.0.0.1", 0)
    app = Starlette(routes=[Route("/sign-in", sign_in), Route("/", page)])
    async with serve_http(app, listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def home(display: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate data directory, without a keyring."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    monkeypatch.setenv("DISPLAY", display)
    return tmp_path


async def save(account: str, *options: str, close: bool = False) -> str:
    """Sign in as a person does; return the command's output."""
    command = [*OPENTABS, "login", f"{account}/sign-in", "--save", "work", *options]
    async with await anyio.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as login:
        assert login.stdin is not None
        assert login.stdout is not None
        said = b""
        with anyio.fail_after(PATIENT), _killed(login):
            while not await _shows("in"):  # noqa: ASYNC110 (another process opens it)
                await anyio.sleep(0.2)
            if close:
                await anyio.sleep(1.5 * LOOK_AGAIN)  # what is saved may be that old
                await _close_window()
            else:
                await login.stdin.send(b"\n")
            async for part in login.stdout:
                said += part
            assert await login.wait() == 0, said.decode()
    return said.decode()


@contextmanager
def _killed(process: Process) -> Generator[None]:
    """Kill a process that would otherwise block a failing test."""
    try:
        yield
    except BaseException:
        process.kill()
        raise


async def _shows(title: str) -> bool:
    """Return whether there is a window with this page."""
    search = ["xdotool", "search", "--onlyvisible", "--name", f"^{title} - "]
    return (await anyio.run_process(search, check=False)).returncode == 0


async def _close_window() -> None:
    """Click the close button of the only tab: without a window manager, no key reaches a window."""
    await anyio.run_process(["xdotool", "mousemove", "266", "30", "click", "1"])


async def seen(account: str) -> tuple[str, str | None]:
    """Return what a headless browser that starts signed in sees."""
    settings = load_settings(port=0, profile=None, headed=False, signed_in="work")
    async with OpenTabs(plugins=[PROBE], settings=settings) as tabs:
        page = await tabs.open(account)
        return await page.inner_text("body"), await page.evaluate("localStorage.theme")


async def test_a_sign_in_is_saved_and_used(account: str, home: Path) -> None:
    said = await save(account)
    assert "saved as work (1 cookie)" in said
    assert "No keyring found" in said
    assert await seen(account) == ("user=ada", "dark")
    assert not [*home.rglob("Cookies")]  # noqa: ASYNC240 (the window's profile is gone)


@pytest.mark.usefixtures("home")
async def test_a_window_that_is_closed_says_that_its_user_is_done(account: str) -> None:
    await save(account, close=True)
    assert [each["name"] for each in read_sign_in("work")["cookies"]] == ["user"]
    assert await seen(account) == ("user=ada", "dark")


async def test_a_test_with_the_mark_begins_signed_in_and_the_next_does_not(
    account: str, home: Path
) -> None:
    await save(account)
    file = home / "test_it.py"
    file.write_text(TEST.format(plugin=str(PROBE), url=account))
    run = await anyio.run_process(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(file)],
        check=False,
        cwd=home,
        env={**os.environ},
    )
    assert run.returncode == 0, run.stdout.decode()
    assert b"2 passed" in run.stdout


async def test_profiles_and_sign_ins_are_listed_and_removed(account: str, home: Path) -> None:
    await save(account, "--profile", "mine")
    listed = await anyio.run_process([*OPENTABS, "profile", "list"])
    assert [line.split()[0] for line in listed.stdout.decode().splitlines()] == ["mine", "work"]
    path = await anyio.run_process([*OPENTABS, "profile", "path", "mine"])
    assert (Path(path.stdout.decode().strip()) / "Default").is_dir()
    for name in ("mine", "work"):
        await anyio.run_process([*OPENTABS, "profile", "remove", name])
    assert not [*home.rglob("Default")]  # noqa: ASYNC240
    again = await anyio.run_process([*OPENTABS, "profile", "remove", "mine"], check=False)
    assert again.returncode == 2


@pytest.mark.usefixtures("home")
async def test_a_browser_that_is_not_signed_in_is_an_error_and_nothing_is_saved(
    account: str,
) -> None:
    login = await anyio.run_process(
        [*OPENTABS, "login", account, "--save", "work"], input=b"\n", check=False
    )
    assert login.returncode == 3
    assert b"There is nothing to save" in login.stderr
    assert sign_ins() == []


@pytest.mark.usefixtures("home")
async def test_without_a_display_the_error_is_all_that_is_said(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    login = await anyio.run_process(
        [*OPENTABS, "login", account, "--save", "work"], input=b"\n", check=False
    )
    assert login.returncode == 3
    said = login.stdout + login.stderr
    assert said.startswith(b"error: ")
    assert b"found no display" in said


@pytest.mark.usefixtures("home")
async def test_a_driver_that_dies_is_an_error_and_nothing_is_saved(account: str) -> None:
    command = [*OPENTABS, "login", f"{account}/sign-in", "--save", "work"]
    async with await anyio.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as login:
        assert login.stdout is not None
        said = b""
        with anyio.fail_after(PATIENT), _killed(login):
            while not await _shows("in"):  # noqa: ASYNC110 (another process opens it)
                await anyio.sleep(0.2)
            os.kill(driver_in(descendants(login.pid)), signal.SIGKILL)
            async for part in login.stdout:
                said += part
            code = await login.wait()
    assert code == 3, said.decode()
    assert "error: Playwright's driver died" in said.decode()
    assert "Traceback" not in said.decode()
    assert [*sign_ins()] == []
