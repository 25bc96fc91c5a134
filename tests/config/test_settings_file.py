"""A permission is added to the user's settings, and the rest of the file is unchanged."""

import stat
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opentabs_py.config.settings_file import set_permission
from opentabs_py.errors import ConfigError

SERVED = """
import sys
import opentabs_py.console.routes, opentabs_py.session.server
print("tomlkit" in sys.modules)
"""


def test_a_server_that_changes_no_setting_does_without_the_parser_that_keeps_comments() -> None:
    shown = subprocess.run([sys.executable, "-c", SERVED], capture_output=True, check=True)
    assert shown.stdout == b"False\n"


def test_the_file_is_created_for_the_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "opentabs" / "config.toml"
    set_permission("chat.send", "auto", file=file)
    assert tomllib.loads(file.read_text()) == {"permissions": {"chat.send": "auto"}}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_comments_and_other_settings_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        "port = 8400  # mine\n\n"
        '[permissions]\n# careful\ndefault = "ask"\n\n'
        "[plugin_settings.chat]\nx = 1\n"
    )
    set_permission("chat.send", "auto", file=file)
    text = file.read_text()
    assert "# mine" in text
    assert "# careful" in text
    assert tomllib.loads(text) == {
        "port": 8400,
        "permissions": {"default": "ask", "chat.send": "auto"},
        "plugin_settings": {"chat": {"x": 1}},
    }


def test_a_permission_replaces_the_one_that_was_there_however_it_was_written(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[permissions]\nchat.send = "ask"\n"mail.read" = "off"\n')
    set_permission("chat.send", "auto", file=file)
    set_permission("mail.read", "auto", file=file)
    assert tomllib.loads(file.read_text()) == {
        "permissions": {"chat": {"send": "auto"}, "mail.read": "auto"}
    }


def test_the_permission_of_a_tool_in_a_package_is_replaced_however_it_was_written(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[permissions]\npkg.tools.find = "ask"\npkg."tools.read" = "ask"\n"pkg.tools".x = "ask"\n'
    )
    for rule in ("pkg.tools.find", "pkg.tools.read", "pkg.tools.x", "pkg.tools.y"):
        set_permission(rule, "auto", file=file)
    assert tomllib.loads(file.read_text()) == {
        "permissions": {
            "pkg": {"tools": {"find": "auto", "y": "auto"}, "tools.read": "auto"},
            "pkg.tools": {"x": "auto"},
        }
    }


def test_a_permission_never_replaces_a_table_of_permissions(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text := '[permissions]\nchat.send = "ask"\n')
    with pytest.raises(ConfigError, match="sets permissions of its tools"):
        set_permission("chat", "auto", file=file)
    assert file.read_text() == text


def test_a_rule_that_settings_cannot_have_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    with pytest.raises(ConfigError, match="not a valid name"):
        set_permission("a b", "auto", file=file)
    assert not file.exists()


def test_a_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    real, file = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    real.write_text("")
    file.symlink_to(real)
    set_permission("default", "ask", file=file)
    assert file.is_symlink()
    assert "default" in real.read_text()


@pytest.mark.parametrize("text", ["[permissions", 'permissions = "ask"'])
def test_a_file_that_is_not_valid_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError):
        set_permission("chat", "auto", file=file)
    assert file.read_text() == text


def test_changes_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    rules = [f"chat.tool_{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as threads:
        [*threads.map(lambda rule: set_permission(rule, "auto", file=file), rules)]
    assert tomllib.loads(file.read_text())["permissions"] == dict.fromkeys(rules, "auto")


def test_a_file_that_begins_with_a_byte_order_mark_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("\ufeffport = 8400\n")
    set_permission("chat.send", "auto", file=file)
    assert tomllib.loads(file.read_text("utf-8-sig")) == {
        "port": 8400,
        "permissions": {"chat.send": "auto"},
    }


def test_a_file_that_cannot_be_written_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match=r"in .*config\.toml: Is a directory\.$"):
        set_permission("chat.send", "auto", file=tmp_path / "config.toml")
