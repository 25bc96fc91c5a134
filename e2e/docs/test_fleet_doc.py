"""What docs/fleet.md shows works as shown, as far as one machine allows."""

import re
import shlex
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import anyio
import nats
import pytest
import yaml  # type: ignore[import-untyped]
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from nats.aio.client import Client

from e2e.chain import PROBE
from e2e.documents import ROOT
from e2e.fleet.members import (
    OPENTABS,
    Fleet,
    Nats,
    a_fleet,
    endpoint,
    nats_server,
    poll,
    until,
)
from e2e.waiting import PATIENT
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.core.fleet.subjects import Role, permissions
from opentabs_py.errors import FleetError
from opentabs_py.fleet.link import NatsLink, nats_link

DOC = (ROOT / "docs" / "fleet.md").read_text()
ROLES: tuple[Role, ...] = ("worker", "endpoint", "operator")


def block(name: str) -> str:
    """Return the fenced block after the comment with this name."""
    [found] = re.findall(rf"<!-- {name} -->\n```\w+\n(.*?)```", DOC, flags=re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Generator[Nats]:
    config = re.sub(r"\$(\w+)_PASSWORD", lambda found: f"{found[1].lower()}-secret", block("nats"))
    with nats_server(tmp_path_factory.mktemp("nats"), config) as server:
        yield server


def address(server: Nats, role: str) -> str:
    return server.url.replace("//", f"//{role}:{role}-secret@")


def test_the_configuration_of_nats_has_the_permissions_that_the_command_prints() -> None:
    shown = re.findall(r"(publish|subscribe): \[(.*?)\]", block("nats"), flags=re.DOTALL)
    subjects = [(verb, re.findall(r'"(.*?)"', on)) for verb, on in shown]
    assert subjects == [each for role in ROLES for each in permissions("default", role).items()]


async def test_these_permissions_are_enough(secured: Nats, tmp_path: Path) -> None:
    with a_fleet(secured, tmp_path, name="default") as fleet:
        fleet.worker("one", nats=address(secured, "worker"))
        async with endpoint(fleet, nats=address(secured, "endpoint"), workers=1) as tabs:
            assert await tabs.call("work", {"key": "k", "reports": 3}) == "k"
            call = await tabs.start("work", {"key": "cancelled", "seconds": 60})
            await fleet.until("began", "cancelled")
            call.cancel()
            await fleet.until("cancelled", "cancelled")
            done = await anyio.run_process(
                [*OPENTABS, "fleet", "drain", "one", "--nats", address(secured, "operator")]
            )
            assert done.returncode == 0
            await until(tabs, lambda known: known == [])


@pytest.mark.parametrize(
    ("role", "subject"),
    [
        ("worker", "opentabs.default.endpoint.>"),
        ("endpoint", "opentabs.default.worker.>"),
        ("operator", "opentabs.default.worker.>"),
    ],
)
async def test_they_are_not_enough_to_read_what_is_for_others(
    secured: Nats, role: str, subject: str
) -> None:
    errors: list[str] = []

    async def note(error: Exception) -> None:
        errors.append(str(error))

    client: Client = await nats.connect(address(secured, role), error_cb=note)
    try:
        await client.subscribe(subject)
        await poll(lambda: bool(errors))
        assert "permissions violation for subscription" in errors[0].lower()
    finally:
        await client.close()


async def test_an_endpoint_drains_no_worker(secured: Nats, tmp_path: Path) -> None:
    with a_fleet(secured, tmp_path, name="default") as fleet:
        fleet.worker("one", nats=address(secured, "worker"))
        as_endpoint = address(secured, "endpoint")
        async with endpoint(fleet, nats=as_endpoint, workers=1) as tabs:
            drain = [*OPENTABS, "fleet", "drain", "one", "--nats", as_endpoint]
            done = await anyio.run_process(drain, check=False)
            assert done.returncode == 3
            assert "permissions violation for publish" in done.stderr.decode().lower()
            assert await tabs.call("work", {"key": "k"}) == "k"


async def test_without_a_password_nobody_connects(secured: Nats) -> None:
    command = [*OPENTABS, "fleet", "status", "--nats", secured.url]
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 3
    assert "Authorization Violation" in " ".join(done.stderr.decode().split())


async def test_the_worker_of_the_files_for_containers_runs(site: str, tmp_path: Path) -> None:
    compose: Any = yaml.safe_load(block("compose"))
    pod: Any = yaml.safe_load(block("kubernetes"))["spec"]["template"]["spec"]
    command = shlex.split(compose["services"]["worker"]["command"])
    assert pod["containers"][0]["args"] == command
    assert pod["containers"][0]["env"] == [{"name": "OPENTABS_NATS", "value": "nats://nats"}]
    assert compose["services"]["worker"]["environment"] == {"OPENTABS_NATS": "nats://nats"}
    here = {"/plugins/chat": str(PROBE), "https://chat.example/": f"{site}/page"}
    options = [here.get(word, word) for word in command[2:]]
    with (
        nats_server(tmp_path) as server,
        a_fleet(server, tmp_path) as fleet,
        anyio.fail_after(2 * PATIENT),
    ):
        fleet.worker("one", *options)
        await use(fleet)


async def use(fleet: Fleet) -> None:
    async with endpoint(fleet, workers=1, ready="probe") as tabs:
        await until(tabs, lambda known: known[0].total_ready["probe"] == 4)
        assert await tabs.call("probe_echo", {"value": 1}) == {"value": 1}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a certificate for 127.0.0.1, which is its own authority, and its key."""
    directory = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nats")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (directory / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (directory / "key.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    return directory


async def assert_is_not_trusted(address: str) -> None:
    command = [*OPENTABS, "fleet", "status", "--nats", address]
    refused = await anyio.run_process(command, check=False)
    assert refused.returncode == 3
    assert "certificate verify failed" in " ".join(refused.stderr.decode().split())


async def test_over_tls_only_a_trusted_server_is_connected_to(
    certificates: Path, tmp_path: Path
) -> None:
    certificate = certificates / "cert.pem"
    files = f'cert_file: "{certificate}"\n  key_file: "{certificates / "key.pem"}"'
    with (
        nats_server(tmp_path, f"tls {{\n  {files}\n}}") as server,
        a_fleet(server, tmp_path) as fleet,
    ):
        address = server.url.replace("nats://", "tls://")
        fleet.worker("one", "--nats-ca", str(certificate), nats=address)
        async with endpoint(fleet, workers=1, nats=address, ca=certificate) as tabs:
            assert await tabs.call("work", {"key": "k"}) == "k"
        where = ["--nats", address, "--nats-ca", str(certificate), "--fleet", fleet.name]
        done = await anyio.run_process([*OPENTABS, "fleet", "status", *where])
        assert not done.stderr
        await assert_is_not_trusted(address)


async def test_certificates_to_trust_rule_out_a_server_without_tls(
    certificates: Path, tmp_path: Path
) -> None:
    with nats_server(tmp_path) as server:
        options = FleetOptions(server.url, ca=certificates / "cert.pem")
        with pytest.raises(FleetError, match="does not offer TLS"):
            await NatsLink(options).open()


async def test_tls_is_used_with_a_server_that_does_not_require_it(
    certificates: Path, tmp_path: Path
) -> None:
    certificate = certificates / "cert.pem"
    files = f'cert_file: "{certificate}"\n  key_file: "{certificates / "key.pem"}"'
    with nats_server(tmp_path, f"tls {{\n  {files}\n}}\nallow_non_tls: true") as server:
        address = server.url.replace("nats://", "tls://")
        await assert_is_not_trusted(address)
        async with nats_link(FleetOptions(address, ca=certificate)) as link:
            assert link.connected
