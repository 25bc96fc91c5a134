"""Attaching: the advice shown while the extension cannot be loaded."""

import socket
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from opentabs_py.browser import attach, discovery
from opentabs_py.browser.attach import Attachment
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
