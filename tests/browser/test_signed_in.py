"""Saved sign-ins are encrypted; profiles have names."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail
from keyring.errors import KeyringLocked

from opentabs_py.browser.signed_in import (
    profile_dir,
    profiles,
    read_sign_in,
    remove_sign_in,
    save_sign_in,
    sign_ins,
)
from opentabs_py.errors import ConfigError

STATE: dict[str, Any] = {"cookies": [{"name": "session", "value": "top-secret"}], "origins": []}


class InMemory(KeyringBackend):
    """A keyring like a system's."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class Locked(InMemory):
    """A keyring that its user has not unlocked, as in a session over SSH."""

    def get_password(self, service: str, username: str) -> str | None:
        raise KeyringLocked(f"{service} {username} is locked")

    def set_password(self, service: str, username: str, password: str) -> None:
        del password
        raise KeyringLocked(f"{service} {username} is locked")


def no_keyring() -> KeyringBackend:
    """The keyring of a system without one."""
    return fail.Keyring()  # type: ignore[no-untyped-call]


@pytest.fixture(params=["keyring", "file"], autouse=True)
def key_place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[str]:
    """Where the key is kept: in the system's keyring, or in a file if there is none."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    usual = keyring.get_keyring()
    keyring.set_keyring(InMemory() if request.param == "keyring" else no_keyring())
    yield request.param
    keyring.set_keyring(usual)


def test_a_saved_sign_in_can_be_read_and_no_secret_is_in_its_file() -> None:
    file = save_sign_in("work", STATE)
    assert read_sign_in("work") == STATE
    assert b"top-secret" not in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_the_key_is_in_a_file_only_where_there_is_no_keyring(
    key_place: str, tmp_path: Path
) -> None:
    warnings: list[str] = []
    save_sign_in("work", STATE, warn=warnings.append)
    save_sign_in("home", STATE, warn=warnings.append)
    keys = [*tmp_path.rglob("*.key")]
    assert len(keys) == len(warnings) == (1 if key_place == "file" else 0)
    for key in keys:
        assert key.stat().st_mode & 0o777 == 0o600
        assert str(key) in warnings[0]
    assert read_sign_in("work") == read_sign_in("home")


def test_a_sign_in_saved_with_another_key_is_an_error_that_says_what_to_do(
    key_place: str, tmp_path: Path
) -> None:
    save_sign_in("work", STATE)
    if key_place == "file":
        next(tmp_path.rglob("*.key")).unlink()
    keyring.set_keyring(InMemory() if key_place == "keyring" else no_keyring())
    with pytest.raises(
        ConfigError, match=r"another key\. Sign in again: opentabs login URL --save"
    ):
        read_sign_in("work")


def test_a_sign_in_saved_while_the_keyring_was_locked_can_be_read_once_it_is_not() -> None:
    keyring.set_keyring(unlocked := InMemory())
    save_sign_in("before", STATE)
    keyring.set_keyring(Locked())
    warnings: list[str] = []
    save_sign_in("meanwhile", STATE, warn=warnings.append)
    assert "No keyring (opentabs sign-ins is locked)" in warnings[0]
    with pytest.raises(ConfigError, match=r"keyring cannot be read .+ Unlock it, or"):
        read_sign_in("before")
    assert read_sign_in("meanwhile") == STATE
    keyring.set_keyring(unlocked)
    assert read_sign_in("before") == read_sign_in("meanwhile") == STATE


def test_a_key_in_a_keyring_that_could_not_be_read_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unlocked = InMemory()
    keyring.set_keyring(unlocked)
    save_sign_in("before", STATE)
    with monkeypatch.context() as dismissed:  # the user closes the first of two prompts
        dismissed.setattr(unlocked, "get_password", Locked().get_password)
        save_sign_in("meanwhile", STATE, warn=lambda _: None)
    assert read_sign_in("before") == read_sign_in("meanwhile") == STATE


def test_a_sign_in_that_was_never_saved_is_an_error_that_names_those_that_were() -> None:
    save_sign_in("home", STATE)
    with pytest.raises(ConfigError, match=r"no sign-in named 'work'\. Saved: home"):
        read_sign_in("work")


def test_a_sign_in_whose_cookies_have_all_expired_is_an_error_that_says_so() -> None:
    old, session = {"name": "old", "expires": 1.5}, {"name": "session", "expires": -1}
    save_sign_in("work", {"cookies": [old, old], "origins": []})
    with pytest.raises(ConfigError, match=r"has expired.*opentabs login URL --save work"):
        read_sign_in("work")
    for state in (
        {"cookies": [old, session], "origins": []},
        {"cookies": [old], "origins": [{"origin": "https://chat.example"}]},
    ):
        save_sign_in("work", state)
        assert read_sign_in("work") == state


def test_sign_ins_are_listed_and_removed() -> None:
    save_sign_in("work", STATE)
    save_sign_in("home", STATE)
    assert sign_ins() == ["home", "work"]
    assert remove_sign_in("home")
    assert not remove_sign_in("home")
    assert sign_ins() == ["work"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", "Work", "a" * 41])
def test_a_name_that_is_not_a_file_name_is_refused(name: str) -> None:
    for use in (profile_dir, read_sign_in, remove_sign_in):
        with pytest.raises(ConfigError, match="not a valid name"):
            use(name)


def test_profiles_are_directories_by_name(tmp_path: Path) -> None:
    assert profiles() == []
    profile_dir("work").mkdir(parents=True)
    profile_dir("work").with_name("work.bak").mkdir()
    assert profiles() == ["work"]
    assert tmp_path in profile_dir("work").parents
