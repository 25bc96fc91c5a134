"""The plugins of a session, loaded from disk and reloaded."""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.browser.stage import stage_extension
from opentabs_py.calling.call import ToolCall
from opentabs_py.config.settings import Settings, load_settings
from opentabs_py.consent.reviews import Reviews
from opentabs_py.core.limits import Limits
from opentabs_py.core.protocol import PluginSpec
from opentabs_py.core.tabs.selection import Target
from opentabs_py.errors import OpenTabsError
from opentabs_py.plugins.build_content import content_digest
from opentabs_py.plugins.load import load_plugin
from opentabs_py.plugins.watch import _Watched
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.session.plugins.plugins import PluginSet
from tests.fakes import (
    Connect,
    FakeBridge,
    FakeSocket,
    Json,
    a_bridge,
    a_document,
    a_tool,
    about_call,
    greeted,
    hello,
    pages_of,
    running,
    tools_json,
)
from tests.session.built import build
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


async def serve(plugins: PluginSet, tmp_path: Path) -> ToolRegistry:
    bridge = FakeBridge()
    registry = ToolRegistry(bridge.pages, message_limit=1_000_000)
    await plugins.serve([bridge], registry, [stage_extension(tmp_path / "extension", port=1)])
    return registry


def texts(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


async def test_in_a_fleet_there_are_no_plugins_and_only_permissions_are_read_again(
    tmp_path: Path,
) -> None:
    given: dict[str, Any] = {"plugins": [build(tmp_path / "chat")]}
    rules: dict[str, Any] = {"permissions": {"chat": "off"}}
    plugins = PluginSet(
        [],
        load_settings(**given, plugin_settings={"chat": {"site": "x"}}),
        read_settings=lambda: load_settings(**given, **rules),
        reviews=Reviews(tmp_path / "reviews"),
        in_fleet=True,
    )
    registry = ToolRegistry(FakeBridge().pages, message_limit=1000)
    plugins.follow(registry)
    changes = await plugins.reload()
    assert (changes.added, changes.removed, changes.changed) == ((), (), ())
    assert plugins.views == []
    assert registry.gate.rules == {"chat": "off"}


async def test_a_plugin_that_does_not_say_its_sdk_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = build(tmp_path / "old", name="old", tools=json.dumps([a_tool("send")]))
    plugins = PluginSet(
        [old, build(tmp_path / "chat")], load_settings(), reviews=Reviews(tmp_path / "reviews")
    )
    await serve(plugins, tmp_path)
    await plugins.reload()
    build(old, name="old", tools=json.dumps([a_tool("read")]))
    changes = await plugins.reload()
    assert changes.changed == ("old",)
    [warning] = texts(caplog)
    assert warning.startswith("The plugin old is served, but its dist/tools.json has no sdkVersion")


async def test_a_plugin_rebuilt_with_a_newer_sdk_stays_in_service_unchanged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = PluginSet(
        [build(tmp_path / "chat")], load_settings(), reviews=Reviews(tmp_path / "reviews")
    )
    registry = await serve(plugins, tmp_path)
    newer = json.dumps({"sdkVersion": "99.0.0", "tools": [a_tool("read")]})
    build(tmp_path / "chat", tools=newer)
    await plugins.reload()
    assert [tool.listing.name for tool in registry.tools] == ["chat_send"]
    assert "sdkVersion: is 99.0.0" in caplog.text


async def test_a_plugin_comes_and_goes_with_its_place_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    build(folder / "chat")
    plugins = PluginSet(
        [],
        load_settings(plugins=(), plugin_folders=(folder,)),
        reviews=Reviews(tmp_path / "reviews"),
    )
    registry = await serve(plugins, tmp_path)
    assert [tool.listing.name for tool in registry.tools] == ["chat_send"]

    build(folder / "mail", name="mail")
    assert (await plugins.reload()).added == ("mail",)
    shutil.rmtree(folder / "chat")
    assert (await plugins.reload()).removed == ("chat",)
    assert [tool.listing.name for tool in registry.tools] == ["mail_send"]


async def test_a_plugin_comes_and_goes_with_its_line_in_a_settings_file(
    tmp_path: Path, write_settings: Callable[[str], object]
) -> None:
    chat = build(tmp_path / "chat")
    package = json.loads((chat / "package.json").read_text())
    package["opentabs"]["configSchema"] = {"site": {"type": "url", "required": True}}
    (chat / "package.json").write_text(json.dumps(package))
    plugins = PluginSet(
        [], load_settings(), read_settings=load_settings, reviews=Reviews(tmp_path / "reviews")
    )
    registry = await serve(plugins, tmp_path)
    assert registry.tools == ()

    write_settings(
        f"plugins = [{json.dumps(str(chat))}]\n[plugin_settings.chat]\nsite = 'https://x.example'\n"
    )
    assert (await plugins.reload()).added == ("chat",)
    assert "https://x.example/*" in plugins.sites
    write_settings("")
    assert (await plugins.reload()).removed == ("chat",)
    assert registry.tools == ()


async def test_whoever_calls_a_tool_of_a_plugin_that_is_skipped_reads_why(tmp_path: Path) -> None:
    chat = tmp_path / "chat"
    plugins = PluginSet([chat], load_settings(), reviews=Reviews(tmp_path / "reviews"))
    registry = await serve(plugins, tmp_path)
    assert f"{chat} is not a directory" in registry.unknown("chat_send").detail.message

    build(chat, tools="[")
    await plugins.reload()
    assert "tools.json" in registry.unknown("chat_send").detail.message
    build(chat)
    await plugins.reload()
    assert "skipped" not in registry.unknown("chat_sent").detail.message


async def test_a_plugin_is_served_once_it_is_reviewed_and_until_that_is_withdrawn(
    tmp_path: Path, write_settings: Callable[[str], object]
) -> None:
    chat = build(tmp_path / "chat")
    write_settings(f"plugins = [{json.dumps(str(chat))}]")
    reviews = Reviews(tmp_path / "reviews")
    plugins = PluginSet([], load_settings(), read_settings=load_settings, reviews=reviews)
    registry = await serve(plugins, tmp_path)
    served = [len(registry.tools)]
    reviews.approve("chat", "1.2.0", content_digest(load_plugin(chat)), {})
    await plugins.reload()
    served.append(len(registry.tools))
    reviews.revoke("chat")
    await plugins.reload()
    served.append(len(registry.tools))
    assert served == [0, 1, 0]


async def test_plugins_named_by_relative_paths_outlive_the_directory_they_were_named_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here, chat = tmp_path / "here", build(tmp_path / "chat")
    here.mkdir()
    build(tmp_path / "more" / "mail", name="mail")

    def read() -> Settings:
        return load_settings(plugins=(Path("../chat"),), plugin_folders=(Path("../more"),))

    with chdir(here):
        plugins = PluginSet([], read(), read_settings=read, reviews=Reviews(tmp_path / "reviews"))
        registry = await serve(plugins, tmp_path)
        here.rmdir()
        build(chat, tools=tools_json(a_tool("receive")))
        await plugins.reload()
        await plugins.reload()
        watched = _Watched(plugins._sources)
    assert [tool.listing.name for tool in registry.tools] == ["chat_receive", "mail_send"]
    assert {chat, tmp_path / "more" / "mail"} <= {*watched.places}
    [warning] = texts(caplog)
    assert warning.startswith(
        "Keeping the previous settings: The current directory no longer exists"
    )


async def test_an_unreadable_settings_file_leaves_the_plugins_unchanged_and_is_reported_once(
    tmp_path: Path, write_settings: Callable[[str], object], caplog: pytest.LogCaptureFixture
) -> None:
    chat = json.dumps(str(build(tmp_path / "chat")))
    write_settings(f"plugins = [{chat}]\nno_review = [{chat}]\n")
    plugins = PluginSet(
        [], load_settings(), read_settings=load_settings, reviews=Reviews(tmp_path / "reviews")
    )
    registry = await serve(plugins, tmp_path)
    write_settings("plugins = [")
    await plugins.reload()
    await plugins.reload()
    assert [tool.listing.name for tool in registry.tools] == ["chat_send"]
    [warning] = texts(caplog)
    assert warning.startswith("Keeping the previous settings: Cannot read the settings in ")
    assert plugins.warnings == [warning]


def test_a_folder_that_is_not_there_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    PluginSet(
        [],
        load_settings(plugins=(), plugin_folders=(tmp_path / "plugs",)),
        reviews=Reviews(tmp_path / "reviews"),
    )
    assert texts(caplog) == [
        f"{tmp_path / 'plugs'} is not a directory (yet); its plugins are served later"
    ]


async def test_a_plugin_that_changes_before_its_script_is_staged_is_skipped(
    tmp_path: Path,
) -> None:
    plugins = PluginSet(
        [build(tmp_path / "chat"), build(tmp_path / "mail", name="mail")],
        load_settings(),
        reviews=Reviews(tmp_path / "reviews"),
    )
    (tmp_path / "chat" / "dist" / "adapter.iife.js").write_bytes(b"/* newer */")
    registry = await serve(plugins, tmp_path)
    assert [tool.listing.name for tool in registry.tools] == ["mail_send"]
    assert [each.plugin for each in plugins.skipped] == ["chat"]


async def test_a_permission_that_names_nothing_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = {"default": "auto", "chat": "auto", "chat.send": "ask", "chat.sned": "off"}
    settings = load_settings(permissions=rules)
    plugins = PluginSet([build(tmp_path / "chat")], settings, reviews=Reviews(tmp_path / "reviews"))
    registry = await serve(plugins, tmp_path)
    registry.gate.set_rules(settings.permissions)
    await plugins.reload()
    await plugins.reload()
    of_none = "has no effect: no plugin or tool of that name is served"
    assert [text for text in texts(caplog) if "no effect" in text] == [
        f"permissions.\"chat.sned\" {of_none}; did you mean 'chat.send' or 'chat'?"
    ]


async def test_a_permission_that_was_given_while_the_server_runs_outlives_a_reload(
    tmp_path: Path,
) -> None:
    settings = load_settings(permissions={"chat": "auto"})
    plugins = PluginSet([build(tmp_path / "chat")], settings, reviews=Reviews(tmp_path / "reviews"))
    registry = await serve(plugins, tmp_path)
    registry.gate.set_rules(settings.permissions)
    await registry.gate.remember("chat.send", "off")
    await plugins.reload()
    assert registry.tools == ()


async def test_what_a_cancelled_reload_has_not_done_is_done_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = build(tmp_path / "chat")
    plugins = PluginSet([chat], load_settings(), reviews=Reviews(tmp_path / "reviews"))
    registry = await serve(plugins, tmp_path)
    build(chat, tools=tools_json(a_tool("read")))
    with monkeypatch.context() as hanging, anyio.CancelScope() as scope:

        async def hang(*_: object, **__: object) -> None:
            scope.cancel()
            await anyio.sleep_forever()

        hanging.setattr(FakeBridge, "sync_plugins", hang)
        await plugins.reload()
    assert [tool.listing.name for tool in registry.tools] == ["chat_send"]
    assert (await plugins.reload()).changed == ("chat",)
    assert [tool.listing.name for tool in registry.tools] == ["chat_read"]


async def test_a_withdrawn_review_that_a_cancelled_reload_left_in_pages_is_removed_by_the_next(
    tmp_path: Path, write_settings: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = build(tmp_path / "chat")
    write_settings(f"plugins = [{json.dumps(str(chat))}]")
    reviews = Reviews(tmp_path / "reviews")
    reviews.approve("chat", "1.2.0", content_digest(load_plugin(chat)), {})
    plugins = PluginSet([], load_settings(), read_settings=load_settings, reviews=reviews)
    await serve(plugins, tmp_path)
    injected: list[list[str]] = []

    async def sync(_: object, specs: Sequence[PluginSpec], **__: object) -> None:
        injected.append([each.name for each in specs])
        if len(injected) == 1:
            scope.cancel()
            await anyio.sleep_forever()

    monkeypatch.setattr(FakeBridge, "sync_plugins", sync)
    reviews.revoke("chat")
    with anyio.CancelScope() as scope:
        await plugins.reload()
    await plugins.reload()
    await plugins.reload()  # with which nothing has changed
    assert injected == [[], []]


async def test_whoever_adds_plugins_reads_why_none_of_them_can_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = PluginSet([], load_settings(), reviews=Reviews(tmp_path / "reviews"))
    await serve(plugins, tmp_path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PluginSet, "_stage", fail)
    async with anyio.create_task_group() as tasks:
        with pytest.raises(OpenTabsError, match="No space left on device") as caught:
            async with plugins.added([build(tmp_path / "chat")], tasks):
                raise AssertionError("served")
    assert caught.type is OpenTabsError  # not one of those of which the caller is to blame


async def test_who_added_a_plugin_can_be_cancelled_while_another_reload_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, mail = build(tmp_path / "chat"), build(tmp_path / "mail", name="mail")
    plugins = PluginSet([chat], load_settings(), reviews=Reviews(tmp_path / "reviews"))
    registry = await serve(plugins, tmp_path)
    added, waiting, go_on, ended = anyio.Event(), anyio.Event(), anyio.Event(), anyio.Event()
    adding = anyio.CancelScope()

    async def wait(*_: object, **__: object) -> None:
        waiting.set()
        await go_on.wait()

    async def add(tasks: TaskGroup) -> None:
        with adding:
            async with plugins.added([mail], tasks):
                added.set()
                await anyio.sleep_forever()
        ended.set()

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(add, tasks)
            await added.wait()
            monkeypatch.setattr(FakeBridge, "sync_plugins", wait)
            build(chat, tools=tools_json(a_tool("read")))
            tasks.start_soon(plugins.reload)
            await waiting.wait()
            adding.cancel()
            with anyio.move_on_after(PATIENT / 2):
                await ended.wait()
            is_over = ended.is_set()
            go_on.set()
    assert is_over
    assert [tool.listing.name for tool in registry.tools] == ["chat_read"]


async def call_chat(bridge: Bridge) -> None:
    await bridge.call(Target("chat"), "send", ToolCall({}, Limits()))


def answer_call(extension: FakeSocket, dispatched: Json) -> None:
    """Answer a call, as its page would."""
    extension.say(about_call("tool.result", dispatched["params"]["callId"], seq=0, value=None))


async def reload_extension(before: FakeSocket, connect: Connect) -> FakeSocket:
    """Connect again, like an extension that has reloaded for a plugin with a new site."""
    before.hang_up()
    again = hello(a_document())
    again["params"] |= {"bootId": "reloaded", "fresh": True}
    extension = connect()
    extension.say(again)
    asked = await extension.hear("plugins.sync")
    extension.say({"id": asked["id"], "result": {"injected": 0, "problems": []}})
    return extension


async def test_no_call_begins_between_the_end_of_the_last_one_and_a_reload_of_the_extensions(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "plugins"
    build(folder / "chat")
    settings = load_settings(plugins=(), plugin_folders=(folder,))
    plugins = PluginSet([], settings, reviews=Reviews(tmp_path / "reviews"))
    first, second = a_bridge(), a_bridge()
    registry = ToolRegistry(pages_of(first, second), message_limit=1_000_000)
    staged = stage_extension(tmp_path / "extension", port=1)
    staged.allow(plugins.sites)

    async with running(first) as connect_first, running(second) as connect_second:
        await plugins.serve([first, second], registry, [staged])
        one = await greeted(connect_first, a_document())
        two = await greeted(connect_second, a_document())
        for extension in (one, two):
            await extension.hear("plugins.sync")
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call_chat, second)
                running_call = await two.hear("tool.dispatch")
                build(folder / "mail", name="mail")
                tasks.start_soon(plugins.reload)
                while first.tabs.held_until < 0:
                    await anyio.lowlevel.checkpoint()
                tasks.start_soon(call_chat, first)
                await until_all_wait()
                answer_call(two, running_call)
                await one.hear("plugins.sync")
                assert "tool.dispatch" not in [each.get("method") for each in one.heard]
                await two.hear("plugins.sync")
                one = await reload_extension(one, connect_first)
                await reload_extension(two, connect_second)
                answer_call(one, await one.hear("tool.dispatch"))


async def test_a_withdrawn_review_turns_tools_off_while_a_reload_waits_for_a_call(
    tmp_path: Path, write_settings: Callable[[str], object]
) -> None:
    folder = tmp_path / "plugins"
    chat = build(folder / "chat")
    write_settings(f"plugin_folders = [{json.dumps(str(folder))}]")
    reviews = Reviews(tmp_path / "reviews")
    reviews.approve("chat", "1.2.0", content_digest(load_plugin(chat)), {})
    plugins = PluginSet([], load_settings(), read_settings=load_settings, reviews=reviews)
    bridge = a_bridge()
    registry = ToolRegistry(pages_of(bridge), message_limit=1_000_000)
    staged = stage_extension(tmp_path / "extension", port=1)
    staged.allow(plugins.sites)

    async with running(bridge) as connect:
        await plugins.serve([bridge], registry, [staged])
        extension = await greeted(connect, a_document())
        await extension.hear("plugins.sync")
        assert [tool.listing.name for tool in registry.tools] == ["chat_send"]
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call_chat, bridge)
                await extension.hear("tool.dispatch")
                mail = build(folder / "mail", name="mail")
                reviews.approve("mail", "1.2.0", content_digest(load_plugin(mail)), {})
                reviews.revoke("chat")
                tasks.start_soon(plugins.reload)
                while bridge.tabs.held_until < 0:
                    await anyio.lowlevel.checkpoint()
                assert registry.tools == ()
                tasks.cancel_scope.cancel()


async def test_the_error_for_a_plugin_that_is_not_served_says_why_it_was_skipped(
    tmp_path: Path,
) -> None:
    bad, reviews = build(tmp_path / "bad", name="bad", tools="{"), Reviews(tmp_path / "reviews")
    alone = PluginSet([bad], load_settings(), reviews=reviews)
    beside = PluginSet([build(tmp_path / "chat"), bad], load_settings(), reviews=reviews)

    for plugins, name, text in [
        (alone, None, "No plugin is served. Skipped: "),
        (alone, "bad", "There is no plugin 'bad'. Skipped: "),
        (beside, "bad", "There is no plugin 'bad'; there are: chat. Skipped: "),
    ]:
        with pytest.raises(LookupError) as raised:
            plugins.view(name)
        assert str(raised.value).startswith(text)
        assert "dist/tools.json: is not JSON" in str(raised.value)
