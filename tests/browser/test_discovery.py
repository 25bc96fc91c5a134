"""Running browsers that allow debugging, found by the file that says where they listen."""

import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from opentabs_py.browser import discovery
from opentabs_py.browser.discovery import PORT_FILE, check_cdp, find_endpoint, user_data_dirs
from opentabs_py.errors import BrowserError, ConfigError


@pytest.fixture
def port() -> Generator[int]:
    """A port on which something listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def allow(directory: Path, port: int, path: str = "/devtools/browser/x") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / PORT_FILE).write_text(f"{port}\n{path}")


def test_a_browser_that_allows_debugging_is_found(tmp_path: Path, port: int) -> None:
    assert find_endpoint(tmp_path, None) is None
    allow(tmp_path, port)
    found = find_endpoint(tmp_path, None)
    assert found is not None
    assert found.url == f"ws://127.0.0.1:{port}/devtools/browser/x"


def test_a_file_that_a_killed_browser_left_behind_counts_for_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    allow(tmp_path, port)
    assert find_endpoint(tmp_path, None) is None


@pytest.mark.parametrize("text", ["", "9222", "x\n/devtools", "9222\n", "9222\nevil.example/x"])
def test_a_file_that_says_no_address_counts_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / PORT_FILE).write_text(text)
    assert find_endpoint(tmp_path, None) is None


def test_of_several_browsers_one_has_to_be_named(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {tmp_path / "one": "Chrome", tmp_path / "two": "Edge"}
    monkeypatch.setattr(discovery, "user_data_dirs", lambda: places)
    allow(tmp_path / "two", port)
    found = find_endpoint(None, None)
    assert found is not None
    assert found.browser == "Edge"
    allow(tmp_path / "one", port)
    with pytest.raises(BrowserError, match=f"--user-data-dir {tmp_path}/one"):
        find_endpoint(None, None)
    assert find_endpoint(tmp_path / "one", None) is not None


def test_an_address_is_used_as_it_is_while_something_listens_there(port: int) -> None:
    url = f"ws://127.0.0.1:{port}/devtools/browser/x"
    found = find_endpoint(None, url)
    assert found is not None
    assert found.url == url


@pytest.mark.parametrize(
    "url",
    [
        "ws://127.0.0.1:1/x",
        "ws://localhost:1/x",
        "ws://[::1]:1/x",
    ],
)
def test_an_address_on_this_machine_is_allowed(url: str) -> None:
    assert check_cdp(url) == url


@pytest.mark.parametrize(
    "url",
    ["wss://127.0.0.1:1/x", "http://127.0.0.1:1", "ws://evil.example:1/x", "127.0.0.1:1", "ws://x"],
)
def test_an_address_elsewhere_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="on this machine"):
        check_cdp(url)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_usual_browsers_are_looked_for_on_each_system(platform: str) -> None:
    places = user_data_dirs(platform, {})
    assert {"Chrome", "Chromium", "Edge", "Brave"} == {*places.values()}
    assert all(Path.home() in place.parents for place in places)
