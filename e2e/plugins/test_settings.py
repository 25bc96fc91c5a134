"""A plugin's settings, from the user's file to the adapter."""

import json
import logging
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.on_disk import PLAIN, write_plugin
from opentabs_py.config.settings import load_settings
from opentabs_py.core.plugins.settings import Typed
from opentabs_py.errors import CallError, ConfigError
from opentabs_py.session.session import OpenTabs

SCHEMA: dict[str, dict[str, Any]] = {
    "site": {"type": "url", "required": True, "label": "Your instance"},
    "token": {"type": "string"},
    "limit": {"type": "number", "default": 10},
    "mode": {"type": "select", "options": ["fast", {"value": "slow", "label": "Slow"}]},
}
SECRET = "hunter2-and-more"


def write(directory: Path, version: str = "1", **more: object) -> Path:
    return write_plugin(
        directory / "my-chat",
        version,
        form=PLAIN,
        tools=["config", "version", "where"],
        patterns=[],
        settings={**SCHEMA, **more},
    )


async def test_settings_reach_the_adapter_and_a_url_says_which_pages_it_is_for(
    tmp_path: Path, site: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "opentabs_py")
    plugin = write(tmp_path)
    other = write_plugin(tmp_path / "other", tools=["config"], patterns=["http://localhost/*"])
    given = {"my-chat": {"site": f"{site}/some/path?q=1", "token": SECRET, "limit": Typed("5")}}
    settings = load_settings(port=0, profile=None, headed=False, plugin_settings=given)
    async with OpenTabs(plugins=[plugin, other], settings=settings) as tabs:
        await tabs.open(f"{site.replace('127.0.0.1', 'localhost')}/page")
        with pytest.raises(CallError) as caught:
            await tabs.call("my_chat_config")
        assert caught.value.detail.code == "TAB_NOT_FOUND"
        assert "Open http://127.0.0.1/," in str(caught.value)

        page = await tabs.context.new_page()
        await page.goto(f"{site}/page")
        value = await tabs.call("my_chat_config")

        assert value == {"config": {"site": f"{site}/some/path?q=1", "token": SECRET, "limit": 5}}
        assert (await tabs.call("other_config"))["config"] == {}

        # A new version, too, starts after its settings, and a new default applies without a reload.
        write(tmp_path, "2", mode={**SCHEMA["mode"], "default": "slow"})
        await tabs.reload_plugins()
        assert (await tabs.call("my_chat_config"))["config"]["mode"] == "slow"
        assert SECRET not in repr(tabs.plugins)

    assert SECRET not in caplog.text
    assert SECRET not in repr(settings)


async def test_a_setting_may_be_longer_than_one_message(tmp_path: Path, site: str) -> None:
    given = {"my-chat": {"site": site, "token": "x" * 1_200_000}}
    settings = load_settings(port=0, profile=None, headed=False, plugin_settings=given)
    async with OpenTabs(plugins=[write(tmp_path)], settings=settings) as tabs:
        await tabs.open(f"{site}/page")
        value = await tabs.call("my_chat_config")
    assert len(value["config"]["token"]) == 1_200_000


async def test_a_call_goes_to_the_tab_of_the_instance_that_it_names(
    tmp_path: Path, site: str
) -> None:
    urls = {"work": site, "home": site.replace("127.0.0.1", "localhost")}
    given = {"my-chat": {"site": Typed(json.dumps(urls))}}
    settings = load_settings(port=0, profile=None, headed=False, plugin_settings=given)
    async with OpenTabs(plugins=[write(tmp_path)], settings=settings) as tabs:
        await tabs.open(f"{urls['work']}/page")
        with pytest.raises(CallError, match=r"and its instance 'home'\. Open http://localhost/"):
            await tabs.call("my_chat_where", {"instance": "home"})
        page = await tabs.context.new_page()
        await page.goto(f"{urls['home']}/page")

        for name, url in urls.items():
            value = await tabs.call("my_chat_where", {"instance": name})
            assert value == {"url": f"{url}/page", "params": {}}
        assert (await tabs.call("my_chat_config", {"instance": "home"}))["config"]["site"] == urls
        named = {document.url: document.tab_id for document in tabs.internals.bridge.tabs.documents}
        tab_id = named[f"{urls['work']}/page"]
        with pytest.raises(CallError, match="shows the instance 'work' of the plugin"):
            await tabs.call("my_chat_where", {"instance": "home", "tabId": tab_id})


async def test_a_new_default_reaches_an_adapter_that_is_the_same(tmp_path: Path, site: str) -> None:
    plugin = write(tmp_path)
    settings = load_settings(port=0, profile=None, plugin_settings={"my-chat": {"site": site}})
    async with OpenTabs(plugins=[plugin], settings=settings) as tabs:
        page = await tabs.open(f"{site}/page")
        assert (await tabs.call("my_chat_config"))["config"]["limit"] == 10

        write(tmp_path, limit={"type": "number", "default": 11})
        await tabs.reload_plugins()

        assert (await tabs.call("my_chat_config"))["config"]["limit"] == 11
        assert await page.evaluate("notes") == ["came 1", "torn down 1", "came 1"]


async def test_settings_of_no_plugin_are_refused_before_anything_starts(tmp_path: Path) -> None:
    settings = load_settings(
        port=0, plugin_settings={"my-chta": {"site": Typed("https://x.example")}}
    )
    with pytest.raises(ConfigError, match=r"'my-chta' \(did you mean 'my-chat'\?\)"):
        async with OpenTabs(plugins=[write(tmp_path)], settings=settings):
            pass


# --- the command line ---


def opentabs(*args: str, directory: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "opentabs_py", *args],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=directory,
        env={**os.environ, "XDG_CONFIG_HOME": str(directory), **environment},
        check=False,
    )


async def test_a_call_takes_settings_from_all_sources_key_by_key(tmp_path: Path, site: str) -> None:
    plugin = write(tmp_path)
    (tmp_path / "opentabs").mkdir()
    (tmp_path / "opentabs" / "config.toml").write_text(
        '[plugin_settings.my-chat]\ntoken = "from the user"\nlimit = 1\nmode = "fast"\n'
    )
    (tmp_path / "pyproject.toml").write_text("[tool.opentabs.plugin_settings.my-chat]\nlimit = 2\n")

    # In a thread, because this one serves the site.
    run = await anyio.to_thread.run_sync(
        partial(
            opentabs,
            *("call", "my_chat_config", "--plugin", str(plugin), "--open", f"{site}/page"),
            *("--set", f"my-chat.site={site}", "--set", "my-chat.limit=4"),
            directory=tmp_path,
            OPENTABS_PLUGIN_SETTINGS='{"my-chat": {"limit": 3, "mode": "slow"}}',
        )
    )

    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["config"] == {
        "site": site, "token": "from the user", "limit": 4, "mode": "slow",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "code", "texts"),
    [
        (["my-chta.site=https://x.example"], 2, ["'my-chta' (did you mean 'my-chat'?)"]),
        (["my-chat.site"], 2, ["PLUGIN.KEY=VALUE"]),
        (
            ["my-chat.mode=quick", "my-chat.limt=3", f"my-chat.limit={SECRET}"],
            3,
            [
                "they have 4 problems",
                'my-chat.mode is "quick", not one of "fast", "slow"; set it with --set my-chat.',
                '--set my-chat.mode=fast, or as mode = "fast" under [plugin_settings.my-chat] in a',
                "my-chat.limt is set, but the plugin has no such setting; did you mean 'limit'?",
                "my-chat.limit is ",
                "my-chat.site is missing (Your instance)",
            ],
        ),
    ],
)
def test_all_problems_of_settings_are_reported_at_once(
    tmp_path: Path, given: list[str], code: int, texts: list[str]
) -> None:
    plugin = write(tmp_path)
    options = [option for text in given for option in ("--set", text)]

    run = opentabs("tools", "--plugin", str(plugin), *options, directory=tmp_path)

    assert run.returncode == code
    for text in texts:
        assert text in run.stderr


def test_settings_in_a_file_for_a_plugin_that_is_not_there_are_only_warned_of(
    tmp_path: Path,
) -> None:
    plugin = write_plugin(tmp_path / "chat")
    (tmp_path / "pyproject.toml").write_text("[tool.opentabs.plugin_settings.chta]\nx = 2\n")

    run = opentabs("tools", "--plugin", str(plugin), directory=tmp_path)

    assert run.returncode == 0
    assert "'chta' (did you mean 'chat'?)" in run.stderr
