"""A session records its calls in the audit if its settings say so."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from opentabs_py.audit.history import read_calls
from opentabs_py.config.paths import audit_file
from opentabs_py.config.settings import Settings, demo_settings
from opentabs_py.errors import CallError
from opentabs_py.session.session import OpenTabs

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("OPENTABS_AUDIT", raising=False)


def sign_in(user: str, password: str) -> str:  # noqa: ARG001
    return f"{user} is signed in, with Bearer abcdefgh.ijk"


async def call(settings: Settings) -> None:
    async with OpenTabs(tools=[sign_in], settings=settings) as tabs:
        await tabs.call("sign_in", {"user": "ann", "password": "hunter2"})
        with pytest.raises(CallError):
            await tabs.call("sign_in", {"user": "ann"})
        with pytest.raises(CallError):
            await tabs.call("sign_out", {})


async def test_a_program_records_nothing_unless_it_asks() -> None:
    await call(Settings())
    assert not audit_file().exists()


def test_a_command_records_unless_it_is_turned_off() -> None:
    assert Settings().with_audit_default().audit is True
    assert Settings(audit=False).with_audit_default().audit is False
    assert demo_settings(headed=None).with_audit_default().audit is False


async def test_every_call_is_there_when_the_session_has_ended() -> None:
    await call(Settings(audit=True))
    entries = [each.entry for each in read_calls(audit_file())]
    assert [(each.tool, each.outcome, each.code) for each in entries] == [
        ("sign_in", "succeeded", None),
        ("sign_in", "refused", "INVALID_ARGUMENTS"),
        ("sign_out", "refused", "UNKNOWN_TOOL"),
    ]
    assert {(each.message, each.arguments, each.result) for each in entries} == {(None,) * 3}
    assert b"ann" not in audit_file().read_bytes()


async def test_values_are_recorded_without_secrets_when_asked() -> None:
    await call(Settings(audit=True, audit_values=True))
    first, second, _ = [each.entry for each in read_calls(audit_file())]
    assert first.arguments == '{"user":"ann","password":"•••"}'
    assert first.result == '"ann is signed in, with Bearer •••"'
    assert second.arguments == '{"user":"ann"}'
    assert "password" in (second.message or "")
    assert b"hunter2" not in audit_file().read_bytes()


@pytest.mark.parametrize("is_for_own_use", [False, True], ids=["serve", "call"])
async def test_the_token_is_masked_even_if_the_server_does_not_ask_for_it(
    *, is_for_own_use: bool
) -> None:
    settings = Settings(audit=True, audit_values=True, token=SecretStr("abcdefghijklmnop1234"))
    async with OpenTabs(
        tools=[sign_in],
        settings=settings.for_own_use(audit=True) if is_for_own_use else settings,
    ) as tabs:
        await tabs.call("sign_in", {"user": "abcdefghijklmnop1234", "password": "hunter2"})

    [record] = read_calls(audit_file())
    assert record.entry.arguments == '{"user":"•••","password":"•••"}'
    assert b"abcdefghijklmnop1234" not in audit_file().read_bytes()


async def test_the_bounds_are_those_of_the_settings() -> None:
    await call(Settings(audit=True, audit_days=1e-9))
    assert read_calls(audit_file()) == []


async def test_who_allowed_a_call_is_recorded_and_so_is_a_call_that_nobody_allowed() -> None:
    await call(Settings(audit=True))
    async with OpenTabs(
        tools=[sign_in], settings=Settings(audit=True, permissions={"default": "off"})
    ) as tabs:
        with pytest.raises(CallError):
            await tabs.call("sign_in", {"user": "ann", "password": "hunter2"})
    entries = [each.entry for each in read_calls(audit_file())]
    found = [(each.outcome, each.code, each.allowed) for each in entries]
    assert (found[0], found[-1]) == (
        ("succeeded", None, "auto"),
        ("refused", "CONSENT_NEEDED", None),
    )
