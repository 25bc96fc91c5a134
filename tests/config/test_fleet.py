"""The options of a fleet, as people write them."""

from pathlib import Path

import pytest

from opentabs_py.config.fleet import FleetOptions, read_labels
from opentabs_py.errors import ConfigError


@pytest.mark.parametrize(
    ("nats", "shown"),
    [
        ("nats://host", "nats://host"),
        ("tls://host:4222", "tls://host:4222"),
        ("nats://me:secret@host,nats://other", "nats://host, nats://other"),
        ("nats://me:a,b@host,nats://other", "nats://host, nats://other"),
    ],
)
def test_an_address_is_shown_without_its_password(nats: str, shown: str) -> None:
    assert FleetOptions(nats).addresses == shown


@pytest.mark.parametrize(
    "nats",
    [
        "",
        "host",
        "http://host",
        "nats://",
        "nats://a,b",
        "nats://a,",
        ",nats://a",
        "nats://a:4222,b",
        "nats://a:99999",
        "nats://a:b",
        "nats://[::1",
    ],
)
def test_an_invalid_address_is_refused(nats: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a NATS server"):
        FleetOptions(nats)


@pytest.mark.parametrize(
    "nats", ["http://me:secret@host", "me:secret@host", "nats://me:secret,secret@host:port"]
)
def test_the_error_for_an_address_does_not_show_its_password(nats: str) -> None:
    with pytest.raises(ConfigError) as refused:
        FleetOptions(nats)
    assert "secret" not in str(refused.value)


def test_addresses_of_web_sockets_are_not_mixed_with_others() -> None:
    with pytest.raises(ConfigError, match="only some of them are WebSockets"):
        FleetOptions("wss://host,nats://me:secret@other")


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        FleetOptions("nats://host", creds=tmp_path / "missing")


@pytest.mark.parametrize(
    ("nats", "login"),
    [
        ("nats://host", {}),
        ("nats://me:a%40b@host,nats://other", {"user": "me", "password": "a@b"}),
        ("nats://me:p@host,nats://me:p@other", {"user": "me", "password": "p"}),
        ("nats://me:p@host,nats://you:q@other", {}),
        ("nats://token@host", {"token": "token"}),
        ("nats://me:@host", {"user": "me", "password": ""}),
        ("nats://me:a,b@host,nats://other", {"user": "me", "password": "a,b"}),
    ],
)
def test_one_login_in_the_addresses_is_that_of_the_fleet(nats: str, login: dict[str, str]) -> None:
    assert FleetOptions(nats).login == login


def test_labels_are_keys_and_values() -> None:
    assert read_labels(["site=eu", "tier = gold", "url=a=b"]) == {
        "site": "eu",
        "tier": "gold",
        "url": "a=b",
    }


@pytest.mark.parametrize("text", ["site", "=eu", "site=", " = "])
def test_an_invalid_label_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="such as site=eu"):
        read_labels([text])


@pytest.mark.parametrize("text", ["site=\udcff", f"site={'x' * 257}", f"{'x' * 257}=eu"])
def test_a_label_that_no_announcement_can_have_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="at most 256 characters of UTF-8"):
        read_labels([text])
