"""Attaching: the advice shown while the extension cannot be loaded."""

import socket
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from opentabs_py.browser import attach, discovery
from opentabs_py.browser.attach import Attachment
from opentabs_py.browser.debugging import RefusedError
from opentabs_py.browser.discovery import Attach
from tests.browser.test_discovery import allow


class EnoughError(Exception):
    """Ends an attachment that would never end by itself."""


class NeverConnected:
    """The link to an extension that does not connect."""

    connected = False

    async def wait_connected(self) -> None:
        await anyio.sleep_forever()

    def changed(self) -> anyio.Event:
        return anyio.Event()


@pytest.fixture
def two_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Two browsers of this user with debugging allowed."""
    chrome, edge = tmp_path / "chrome", tmp_path / "edge"
    monkeypatch.setattr(discovery, "user_data_dirs", lambda: {chrome: "Chrome", edge: "Edge"})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for directory in (chrome, edge):
            allow(directory, listener.getsockname()[1])
        yield


@pytest.mark.anyio
@pytest.mark.usefixtures("two_running")
async def test_the_same_advice_is_shown_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    find = discovery.find_endpoint

    def count(user_data_dir: Path | None, cdp: str | None) -> discovery.DebuggingEndpoint | None:
        nonlocal looked
        looked += 1
        if looked > 5:
            raise EnoughError
        return find(user_data_dir, cdp)

    monkeypatch.setattr(attach, "find_endpoint", count)
    monkeypatch.setattr(attach, "LOOK_AGAIN", 0.0)
    shown: list[str] = []
    attachment = Attachment(tmp_path, NeverConnected(), Attach(), show=shown.append)
    with pytest.raises(EnoughError):
        await attachment.run()
    assert len(shown) == 1
    assert "--user-data-dir" in shown[0]


@pytest.mark.anyio
async def test_a_directory_in_which_no_browser_runs_is_named_in_the_advice(tmp_path: Path) -> None:
    shown: list[str] = []

    def show(text: str) -> None:
        shown.append(text)
        raise EnoughError

    options = Attach(user_data_dir=tmp_path / "chrmoe")
    with pytest.raises(EnoughError):
        await Attachment(tmp_path, NeverConnected(), options, show=show).run()
    who = f"No running browser with the user data directory {tmp_path}/chrmoe"
    assert shown[0].startswith(f"{who} allows debugging.")


class Connecting(NeverConnected):
    """The link to an extension that an earlier server left in the browser; counts the waits."""

    def __init__(self) -> None:
        self.waits = 0

    async def wait_connected(self) -> None:
        self.waits += 1
        raise EnoughError


@pytest.mark.anyio
async def test_only_an_extension_that_was_left_in_a_browser_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extension, link = tmp_path / "attached", Connecting()
    monkeypatch.setattr(attach, "LOOK_AGAIN", 0.0)
    monkeypatch.setattr(attach, "find_endpoint", _raise_enough)
    attachment = Attachment(extension, link, Attach(), show=print)
    with pytest.raises(EnoughError):
        await attachment.run()
    assert link.waits == 0
    (tmp_path / "attached.loaded").touch()
    extension.mkdir()
    with pytest.raises(EnoughError):
        await attachment.run()
    assert link.waits == 1
    attachment.handle_removed()
    assert not extension.exists()
    with pytest.raises(EnoughError):
        await attachment.run()
    assert link.waits == 1


def _raise_enough(
    _user_data_dir: Path | None, _cdp: str | None
) -> discovery.DebuggingEndpoint | None:
    raise EnoughError


@pytest.fixture
def chrome(monkeypatch: pytest.MonkeyPatch) -> list[discovery.DebuggingEndpoint | None]:
    """What each look for a running browser finds, the next one first; after that, `EnoughError`."""
    found: list[discovery.DebuggingEndpoint | None] = []

    def look(_user_data_dir: Path | None, _cdp: str | None) -> discovery.DebuggingEndpoint | None:
        if not found:
            raise EnoughError
        return found.pop(0)

    monkeypatch.setattr(attach, "LOOK_AGAIN", 0.0)
    monkeypatch.setattr(attach, "find_endpoint", look)
    return found


CHROME = discovery.DebuggingEndpoint("Chrome", "ws://127.0.0.1:9222/devtools/browser/1")
RESTARTED = discovery.DebuggingEndpoint("Chrome", "ws://127.0.0.1:9222/devtools/browser/2")


@pytest.mark.anyio
async def test_a_browser_that_was_suspended_is_not_asked_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chrome: list[discovery.DebuggingEndpoint | None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    loaded: list[discovery.DebuggingEndpoint] = []

    async def load(endpoint: discovery.DebuggingEndpoint, _extension: Path) -> None:
        loaded.append(endpoint)

    monkeypatch.setattr(attach, "load_extension", load)
    chrome += [CHROME, None, CHROME, RESTARTED, None, RESTARTED]
    with pytest.raises(EnoughError):
        await Attachment(tmp_path / "x", NeverConnected(), Attach(), show=print).run()
    assert loaded == [CHROME, RESTARTED]
    assert caplog.messages == ["Chrome has loaded the extension"] * 2


@pytest.mark.anyio
async def test_a_refusal_is_shown_again_when_the_browser_is_seen_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chrome: list[discovery.DebuggingEndpoint | None],
) -> None:
    async def load(endpoint: discovery.DebuggingEndpoint, _extension: Path) -> None:
        raise RefusedError(endpoint)

    monkeypatch.setattr(attach, "load_extension", load)
    shown: list[str] = []
    chrome += [CHROME, None, CHROME]
    with pytest.raises(EnoughError):
        await Attachment(tmp_path / "x", NeverConnected(), Attach(), show=shown.append).run()
    asked, refused, gone, again = shown
    assert "Click Allow" in asked
    assert "No running browser" in gone
    assert refused == again


@pytest.mark.anyio
async def test_the_user_is_told_of_an_extension_that_was_turned_off(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chrome: list[discovery.DebuggingEndpoint | None],
) -> None:
    async def load(_endpoint: discovery.DebuggingEndpoint, _extension: Path) -> None:
        pass

    monkeypatch.setattr(attach, "load_extension", load)
    shown: list[str] = []
    chrome += [CHROME] * (1 + attach.LOOKS_FOR_EXTENSION)
    with pytest.raises(EnoughError):
        await Attachment(tmp_path / "x", NeverConnected(), Attach(), show=shown.append).run()
    assert shown[-1].startswith("Chrome is running, but the extension in it does not connect.")
    chrome += [CHROME] * attach.LOOKS_FOR_EXTENSION
    shown.clear()
    with pytest.raises(EnoughError):
        await Attachment(tmp_path / "x", NeverConnected(), Attach(), show=shown.append).run()
    assert not any("does not connect" in each for each in shown)  # it may be about to


class Dropping(NeverConnected):
    """The link to an extension that an earlier server left in the browser; it breaks soon."""

    def __init__(self) -> None:
        self.connected = True

    def changed(self) -> anyio.Event:
        self.connected = False
        event = anyio.Event()
        event.set()
        return event


@pytest.mark.anyio
async def test_a_browser_whose_extension_just_disconnected_is_not_asked(
    tmp_path: Path, chrome: list[discovery.DebuggingEndpoint | None]
) -> None:
    shown: list[str] = []
    chrome += [CHROME, CHROME]
    with pytest.raises(EnoughError):
        await Attachment(tmp_path / "x", Dropping(), Attach(), show=shown.append).run()
    assert shown == []
