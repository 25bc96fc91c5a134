"""The settings of a plugin, read and written by the console."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from opentabs_py.plugins.load import load_plugin, load_plugins
from tests.console.served import OURS, ServedConsole
from tests.fakes import a_tool, tools_json

pytestmark = pytest.mark.anyio

SECRET = "hunter2-of-the-test"
SCHEMA = {
    "site": {"type": "url", "label": "Site", "required": True},
    "key": {"type": "string", "label": "API key"},
    "days": {"type": "number", "default": 7},
    "loud": {"type": "boolean"},
    "view": {"type": "select", "options": ["day", {"value": "week", "label": "A week"}]},
}


class UserFile:
    """The user's settings file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, text: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(text)

    def read(self) -> str:
        return self.path.read_text()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserFile:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    from opentabs_py.config.paths import user_file

    path = user_file()
    assert path.is_relative_to(tmp_path)
    return UserFile(path)


@pytest.fixture
def served(tmp_path: Path) -> ServedConsole:
    about = {
        "displayName": "Chat",
        "description": "Chats.",
        "urlPatterns": [],
        "configSchema": SCHEMA,
    }
    package = {"name": "opentabs-plugin-chat", "version": "1.0.0", "opentabs": about}
    directory = tmp_path / "chat"
    (directory / "dist").mkdir(parents=True)
    (directory / "package.json").write_text(json.dumps(package))
    (directory / "dist" / "tools.json").write_text(tools_json(a_tool("send")))
    (directory / "dist" / "adapter.iife.js").write_text("")
    served = ServedConsole()
    served.plugins.plugins[:] = []
    served.plugins.skipped[:] = load_plugins([directory])[1]
    return served


async def look(served: ServedConsole, plugin: str = "chat") -> Any:
    async with served.browser() as client:
        return (await client.get(f"/console/api/settings/{plugin}")).json()


async def save(served: ServedConsole, **values: Any) -> tuple[int, Any]:
    async with served.browser() as client:
        body = {"plugin": "chat", "values": values}
        answer = await client.post("/console/api/settings", json=body, headers=OURS)
        return answer.status_code, answer.json()


async def test_a_plugin_that_lacks_a_setting_can_be_given_it(
    file: UserFile, served: ServedConsole
) -> None:
    file.write("# mine\nidle = 5  # seconds\n")
    described = await look(served)
    assert described["isServed"] is False
    assert [each["key"] for each in described["settings"]] == [*SCHEMA]
    status, _ = await save(served, site="https://chat.example", key=SECRET, days=3)
    assert status == 200
    assert file.read().startswith("# mine\nidle = 5  # seconds\n")
    written = tomllib.loads(file.read())["plugin_settings"]
    assert written == {"chat": {"site": "https://chat.example", "key": SECRET, "days": 3}}
    assert served.plugins.reloads == 1


async def test_a_text_that_may_be_a_secret_is_never_sent_to_the_page(
    file: UserFile, served: ServedConsole, tmp_path: Path
) -> None:
    file.write(f'[plugin_settings.chat]\nsite = "https://chat.example"\nkey = "{SECRET}"\n')
    configs: list[dict[str, JsonValue] | None] = [None]
    configs.append({"site": "https://chat.example", "key": SECRET, "days": 7})
    for config in configs:
        if config is not None:
            served.plugins.skipped[:] = []
            plugin = load_plugin(tmp_path / "chat")
            served.plugins.plugins[:] = [replace(plugin, config=config)]
        described = await look(served)
        assert SECRET not in json.dumps(described)
        by_key = {each["key"]: each for each in described["settings"]}
        assert (by_key["key"]["isSet"], by_key["key"]["value"]) == (True, None)
        assert by_key["site"]["value"] == "https://chat.example"
    status, answer = await save(served, key=SECRET, site="ftp://nowhere")
    assert (status, SECRET in json.dumps(answer)) == (409, False)


async def test_values_that_do_not_fit_are_refused_and_nothing_is_lost(
    file: UserFile, served: ServedConsole
) -> None:
    before = '[plugin_settings.chat]\nsite = "https://chat.example"\nview = "day"\n'
    file.write(before)
    for wrong in ({"days": "many"}, {"view": "year"}, {"nope": 1}, {"site": None}):
        status, answer = await save(served, **wrong)
        assert (status, "settings of the plugin" in answer["error"]) == (409, True)
    assert file.read() == before
    assert served.plugins.reloads == 0
    status, _ = await save(served, view=None, loud=True)
    assert status == 200
    written = tomllib.loads(file.read())["plugin_settings"]["chat"]
    assert written == {"site": "https://chat.example", "loud": True}


async def test_a_file_that_cannot_be_read_is_left_alone(
    file: UserFile, served: ServedConsole
) -> None:
    file.write("[settings")
    status, answer = await save(served, site="https://chat.example")
    assert (status, str(file.path) in answer["error"]) == (409, True)
    assert file.read() == "[settings"


async def test_a_value_that_something_else_overrides_is_marked(
    file: UserFile, served: ServedConsole, tmp_path: Path
) -> None:
    file.write('[plugin_settings.chat]\nsite = "https://chat.example"\n')
    served.plugins.skipped[:] = []
    plugin = load_plugin(tmp_path / "chat")
    served.plugins.plugins[:] = [replace(plugin, config={"site": "https://other.example"})]
    first, *rest = (await look(served))["settings"]
    assert (first["isElsewhere"], first["value"]) == (True, "https://other.example")
    assert not any(each["isElsewhere"] for each in rest)
    assert "no such plugin" in (await look(served, "nope"))["error"]


@pytest.mark.parametrize("days", ["inf", "nan", "2020-01-01", "[[{ at = 2020-01-01 }], -inf]"])
async def test_a_value_that_json_lacks_is_shown_as_an_empty_field(
    file: UserFile, served: ServedConsole, days: str
) -> None:
    file.write(f'[plugin_settings.chat]\nsite = "https://chat.example"\ndays = {days}\n')
    by_key = {each["key"]: each for each in (await look(served))["settings"]}
    assert by_key["days"]["value"] is None
    assert (by_key["days"]["isSet"], by_key["days"]["isWritten"]) == (False, True)
    status, _ = await save(served, days=3)
    assert status == 200
    assert tomllib.loads(file.read())["plugin_settings"]["chat"]["days"] == 3
