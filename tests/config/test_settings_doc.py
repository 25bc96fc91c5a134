"""docs/settings.md lists every setting."""

import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from opentabs_py.config.paths import user_file
from opentabs_py.config.settings import DEFAULT_PORT, Settings, load_settings
from tests.cli.in_process import opentabs_here

DOCUMENT = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
ROWS: list[tuple[str, str, str]] = re.findall(
    r"^\| `([a-z_]+)` \| (?:`(--[\w-]+)`)? ?\| (.+?) \|", DOCUMENT, re.MULTILINE
)
# Options with another name than their setting.
OPTIONS = MappingProxyType(
    {
        "plugins": "--plugin",
        "plugin_folders": "--plugins",
        "permissions": "--permission",
        "plugin_settings": "--set",
    }
)
# What is used where the setting has no default of its own.
DEFAULTS = MappingProxyType(
    {
        "port": str(DEFAULT_PORT),
        "audit": "true",
        "chromium": "found automatically",
        "profile": "a new one",
    }
)


def shown(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value:.0f}"
        case str():
            return f"`{value}`"
        case _:
            return "none"


def test_it_has_every_setting_with_its_default() -> None:
    defaults = {
        name: DEFAULTS.get(name) or shown(field.get_default())
        for name, field in Settings.model_fields.items()
    }
    assert {name: default for name, _, default in ROWS} == defaults


def test_it_has_the_option_of_every_setting_that_has_one(tmp_path: Path) -> None:
    options = set(re.findall(r"--[\w-]+", opentabs_here("serve", "--help", cwd=tmp_path).stdout))
    of_settings = {
        name: option
        for name in Settings.model_fields
        if (option := OPTIONS.get(name, "--" + name.replace("_", "-"))) in options
    }
    assert {name: option for name, option, _ in ROWS if option} == of_settings


@pytest.mark.parametrize("name", ["config.toml", "pyproject.toml"])
def test_its_example_of_a_file_is_valid(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    [text] = re.findall(
        rf"^<!-- file: {name} -->\n```toml\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL
    )
    file = {"config.toml": user_file(), "pyproject.toml": tmp_path / "pyproject.toml"}[name]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    settings = load_settings()
    assert settings.idle == 60
    assert [each.name for each in settings.plugins] == ["chat"]
    assert settings.permissions == {"chat.send_message": "ask"}
    assert settings.plugin_settings == {"chat": {"site": "https://chat.example"}}
