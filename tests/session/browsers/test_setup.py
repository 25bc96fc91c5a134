"""Which extension may connect as the browser of a session."""

import json
from pathlib import Path

import pytest

from opentabs_py import OpenTabs
from opentabs_py.browser.discovery import Attach
from opentabs_py.config.settings import load_settings

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data directory of its own, where extensions for running browsers are staged."""
    for variable in ("XDG_DATA_HOME", "HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "data"))


def attached_to(browser: Attach) -> OpenTabs:
    return OpenTabs(browser=browser, settings=load_settings(port=0))


async def secret_left_by(browser: Attach) -> str:
    """Return the secret of the extension that a server for this browser leaves behind."""
    async with attached_to(browser) as tabs:
        config = json.loads((tabs.extension_dir / "config.json").read_text())
        secret: str = config["secret"]
        assert tabs.internals.pages.knows(secret)
    return secret


@pytest.mark.parametrize(
    "other",
    [
        Attach(user_data_dir=Path("another")),
        Attach(cdp="ws://127.0.0.1:1/devtools/browser/x"),
        Attach(),
    ],
)
async def test_an_extension_that_was_left_in_another_browser_may_not_connect(
    other: Attach, tmp_path: Path
) -> None:
    named = Attach(user_data_dir=tmp_path / "named")
    left = await secret_left_by(other)
    async with attached_to(named) as tabs:
        assert not tabs.internals.pages.knows(left)


async def test_one_that_was_left_in_the_named_browser_connects_again(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "named")
    left = await secret_left_by(Attach(user_data_dir=tmp_path / "named"))
    async with attached_to(Attach(user_data_dir=tmp_path / "link")) as tabs:
        assert tabs.internals.pages.knows(left)


async def test_one_that_was_loaded_by_hand_may_not_connect_in_place_of_an_attached_one() -> None:
    async with OpenTabs(browser="none", settings=load_settings(port=0)) as tabs:
        left = json.loads((tabs.extension_dir / "config.json").read_text())["secret"]
    async with attached_to(Attach()) as tabs:
        assert not tabs.internals.pages.knows(left)
