"""The connection to NATS: before it is established, and with a server that accepts little."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from opentabs_py.config.fleet import FleetOptions
from opentabs_py.core.fleet.channel import LONGEST_PACKET
from opentabs_py.core.fleet.congestion import INITIAL_WINDOW
from opentabs_py.errors import ConfigError, FleetError
from opentabs_py.fleet.link import NatsLink, Received, nats_link
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

NOWHERE = "tls://127.0.0.1:1"


@pytest.mark.parametrize(
    "with_file",
    [lambda file: FleetOptions(NOWHERE, ca=file), lambda file: FleetOptions(NOWHERE, cert=file)],
    ids=["ca", "cert"],
)
async def test_a_file_without_certificates_is_named_in_the_error(
    with_file: Callable[[Path], FleetOptions], tmp_path: Path
) -> None:
    file = tmp_path / "empty.pem"
    file.touch()
    with pytest.raises(ConfigError, match=r"Cannot use the certificate.*empty\.pem"):
        await NatsLink(with_file(file)).open()


class FakeNats:
    """A NATS server that greets, answers pings, and ignores everything else.

    Args:
        accepts: The maximum message size that it announces, in bytes.

    Attributes:
        published: The subjects of the messages that have arrived.
        subscriptions: The ids of the subscriptions.
        connects: Who each client said that it is.
        others: The hosts and ports of the other servers of the cluster.
        answers: Whether it answers pings now; until then, it reads nothing more.
        asked: A ping waits for its answer.
        greets: Whether it always answers the first ping of a connection.
        server: What listens.
    """

    server: asyncio.Server

    def __init__(self, accepts: int) -> None:
        self.accepts = accepts
        self.url = ""
        self.published: list[str] = []
        self.subscriptions: list[str] = []
        self.connects: list[dict[str, Any]] = []
        self.others: list[str] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.asked = asyncio.Event()
        self.greets = False
        self._clients: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.append(writer)
        info: dict[str, Any] = {"server_id": "fake", "max_payload": self.accepts, "headers": True}
        info |= {"connect_urls": self.others, "auth_required": True, "nonce": "to sign"}
        writer.write(f"INFO {json.dumps(info)}\r\n".encode())
        is_greeted = not self.greets
        async for line in reader:
            if line.startswith(b"PING"):
                if is_greeted and not self.answers.is_set():
                    self.asked.set()
                    await self.answers.wait()
                is_greeted = True
                writer.write(b"PONG\r\n")
            elif line.startswith(b"CONNECT "):
                self.connects.append(json.loads(line.removeprefix(b"CONNECT ")))
            elif line.startswith(b"SUB "):
                self.subscriptions.append(line.split()[-1].decode())
            elif line.startswith(b"PUB "):
                _, subject, size = line.split()
                await reader.readexactly(int(size) + 2)
                self.published.append(subject.decode())
        writer.close()

    def say(self, lines: str) -> None:
        """Send lines of the protocol to the only client."""
        [client] = self._clients
        client.write(lines.replace("\n", "\r\n").encode())

    def stop(self) -> None:
        """Accept nobody any more."""
        self.server.close()
        self.disconnect()

    def disconnect(self) -> None:
        while self._clients:
            self._clients.pop().close()


@asynccontextmanager
async def fake_nats(accepts: int) -> AsyncGenerator[FakeNats]:
    nats = FakeNats(accepts)
    nats.server = await asyncio.start_server(nats.serve, "127.0.0.1", 0)
    nats.url = f"nats://127.0.0.1:{nats.server.sockets[0].getsockname()[1]}"
    try:
        yield nats
    finally:
        nats.stop()


@asynccontextmanager
async def linked() -> AsyncGenerator[tuple[FakeNats, NatsLink]]:
    async with fake_nats(LONGEST_PACKET) as nats, nats_link(FleetOptions(nats.url)) as link:
        yield nats, link


async def test_a_server_that_accepts_no_whole_packet_is_refused_with_the_setting_to_change() -> (
    None
):
    async with fake_nats(accepts=LONGEST_PACKET - 1) as nats:
        link = NatsLink(FleetOptions(nats.url))
        with pytest.raises(FleetError, match=r"65,544 bytes.* needs 65,545\. Set max_payload"):
            await link.open()
        assert not link.connected


async def test_a_server_that_accepts_a_whole_packet_is_used() -> None:
    async with linked() as (_, link):
        assert link.connected


async def test_a_server_that_accepts_less_after_a_reconnect_is_logged_and_so_is_each_loss(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with linked() as (nats, link):
        relinked = anyio.Event()
        link.relinked.subscribe(relinked.set)
        nats.accepts = 1000
        nats.disconnect()
        with anyio.fail_after(PATIENT):
            await relinked.wait()
        link.publish("there", bytes(1001))
        await link.flush()
    less, lost = (
        [
            each.message
            for each in caplog.records
            if each.levelname == level and said in each.message
        ]
        for level, said in (("ERROR", "of 1,000 bytes at most"), ("WARNING", "of 1001 bytes was"))
    )
    assert (len(less), len(lost)) == (1, 1)


async def test_a_link_that_is_back_is_not_connected_before_others_are_notified() -> None:
    async with linked() as (nats, link):
        noticed: list[bool] = []
        relinked = anyio.Event()
        link.relinked.subscribe(lambda: noticed.append(link.connected))
        link.relinked.subscribe(relinked.set)
        nats.greets = True
        nats.answers.clear()
        nats.disconnect()
        with anyio.fail_after(PATIENT):
            await nats.asked.wait()  # the client is connected, and flushes what was left
            assert not link.connected
            assert not link.publish("too early")
            nats.answers.set()
            await relinked.wait()
        assert noticed == [True]


async def test_on_a_slow_link_a_short_message_passes_the_long_ones_that_wait() -> None:
    async with linked() as (nats, link):
        nats.answers.clear()
        for _ in range(40):
            link.publish("result", bytes(LONGEST_PACKET))
        with anyio.fail_after(PATIENT):
            await nats.asked.wait()
        link.publish("beat")
        nats.answers.set()
        await link.flush()
    assert nats.published.index("beat") <= INITIAL_WINDOW // LONGEST_PACKET + 1
    assert nats.published.count("result") == 40


async def test_what_waits_when_the_link_goes_down_is_dropped() -> None:
    async with linked() as (nats, link):
        relinked = anyio.Event()
        link.relinked.subscribe(relinked.set)
        nats.answers.clear()
        for _ in range(40):
            link.publish("old", bytes(LONGEST_PACKET))
        with anyio.fail_after(PATIENT):
            await nats.asked.wait()
            nats.disconnect()
            nats.answers.set()
            await relinked.wait()
        for _ in range(40):
            link.publish("new", bytes(LONGEST_PACKET))
        await link.flush()
    assert nats.published.count("old") <= INITIAL_WINDOW // LONGEST_PACKET + 1
    assert nats.published.count("new") == 40


async def test_a_message_says_what_arrived_and_that_nobody_listens_even_after_a_handler_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    received: list[Received] = []

    def handle(message: Received) -> None:
        received.append(message)
        if message.data == b"bad":
            raise KeyError

    async with linked() as (nats, link):
        await link.subscribe("there", handle)
        await link.flush()
        [number] = nats.subscriptions
        nats.say(f"MSG there {number} 3\nbad\n")
        nats.say(f"MSG there {number} back 4\ngood\n")
        nats.say(f"HMSG there {number} 16 16\nNATS/1.0 503\n\n\n")
        with anyio.fail_after(PATIENT):
            while len(received) < 3:
                await anyio.lowlevel.checkpoint()
    assert received == [
        Received("there", b"bad", absent=False, reply=""),
        Received("there", b"good", absent=False, reply="back"),
        Received("there", b"", absent=True, reply=""),
    ]
    assert caplog.messages.count("A message of the fleet could not be handled") == 1


async def test_a_subject_that_nats_refuses_is_logged_with_what_lists_the_permissions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with linked() as (nats, _):
        nats.say("-ERR 'Permissions Violation for Subscription to \"there\"'\n")
        with anyio.fail_after(PATIENT):
            while not caplog.messages:
                await anyio.lowlevel.checkpoint()
    [said] = [each for each in caplog.messages if each.startswith("NATS refused: ")]
    assert "opentabs fleet permissions" in said


async def test_a_connection_that_the_server_ends_with_an_error_is_established_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with linked() as (nats, link):
        relinked = anyio.Event()
        link.relinked.subscribe(relinked.set)
        await link.subscribe("there", lambda _: None)
        await link.flush()
        nats.say("-ERR 'User Authentication Expired'\n")
        with anyio.fail_after(PATIENT):
            await relinked.wait()
        assert link.connected
    assert nats.subscriptions == ["1", "1"]
    assert "NATS ended the connection: user authentication expired" in caplog.messages


JWT = b"-----BEGIN NATS USER JWT-----\neyJ\n------END NATS USER JWT------\n"
SEED = b"-----BEGIN USER NKEY SEED-----\n%b\n------END USER NKEY SEED------\n"
CREDENTIALS = JWT + SEED % b"SUAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEQ"


@pytest.mark.parametrize(
    "content",
    [b"", CREDENTIALS.removeprefix(JWT), JWT, JWT + SEED % b"nonsense", JWT + SEED.split(b"%b")[0]],
    ids=["empty", "without a token", "without a seed", "with another seed", "cut in the seed"],
)
async def test_a_file_without_credentials_is_named_in_the_error(
    content: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "my.creds"
    file.write_bytes(content)
    async with fake_nats(accepts=LONGEST_PACKET) as nats:
        link = NatsLink(FleetOptions(nats.url, creds=file))
        with anyio.fail_after(PATIENT), pytest.raises(FleetError, match=r"my\.creds"):
            await link.open()
        assert nats.connects == []


async def test_credentials_that_are_renewed_are_read_again_when_they_are_complete(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "opentabs_py.fleet")
    file = tmp_path / "my.creds"
    file.write_bytes(CREDENTIALS)
    async with (
        fake_nats(accepts=LONGEST_PACKET) as nats,
        nats_link(FleetOptions(nats.url, creds=file)) as link,
    ):
        relinked = anyio.Event()
        link.relinked.subscribe(relinked.set)
        file.write_bytes(b"")
        nats.disconnect()
        with anyio.fail_after(PATIENT):
            while not any("no credentials" in each for each in caplog.messages):
                await anyio.lowlevel.checkpoint()
            file.write_bytes(CREDENTIALS.replace(b"eyJ", b"new"))
            await relinked.wait()
    assert [each["jwt"] for each in nats.connects] == ["eyJ", "new"]


async def test_a_server_that_cannot_be_reached_is_named_with_what_to_do() -> None:
    link = NatsLink(FleetOptions("nats://127.0.0.1:1"))
    with (
        anyio.fail_after(PATIENT),
        pytest.raises(FleetError, match=r"nats://127\.0\.0\.1:1: .+\. .* start NATS: nats-server"),
    ):
        await link.open()
    assert not link.connected


async def test_a_server_without_tls_is_not_sent_the_password_of_an_address_with_tls() -> None:
    async with fake_nats(accepts=LONGEST_PACKET) as nats:
        address = nats.url.replace("nats://", "tls://me:secret@")
        link = NatsLink(FleetOptions(address))
        with anyio.fail_after(PATIENT), pytest.raises(FleetError, match="does not offer TLS"):
            await link.open()
    assert nats.connects == []


@pytest.mark.parametrize(
    ("login", "said"),
    [
        ("me:a%2Fb%40c", {"user": "me", "pass": "a/b@c"}),
        ("me:100%", {"user": "me", "pass": "100%"}),
        ("t%23ken", {"auth_token": "t#ken"}),
    ],
)
async def test_a_password_is_decoded_and_also_for_the_servers_that_the_first_one_names(
    login: str, said: dict[str, str]
) -> None:
    async with fake_nats(LONGEST_PACKET) as other, fake_nats(LONGEST_PACKET) as nats:
        nats.others = [other.url.removeprefix("nats://")]
        address = nats.url.replace("//", f"//{login}@")
        async with nats_link(FleetOptions(address)) as link:
            relinked = anyio.Event()
            link.relinked.subscribe(relinked.set)
            nats.stop()
            with anyio.fail_after(PATIENT):
                await relinked.wait()
    for server in (nats, other):
        assert said.items() <= server.connects[0].items()
