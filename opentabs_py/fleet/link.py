"""The connection of a worker or an endpoint to NATS."""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from math import inf
from typing import Any, Final, cast

import anyio

from opentabs_py.calling.listeners import Listeners
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.core.fleet.channel import LONGEST_PACKET
from opentabs_py.core.fleet.pacer import Outgoing, Pacer
from opentabs_py.core.fleet.subjects import Subjects
from opentabs_py.errors import ConfigError, FleetError

try:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.errors import Error as NatsError
    from nats.errors import MaxPayloadError
    from nats.errors import TimeoutError as NatsTimeoutError

    from opentabs_py.fleet.client import NatsClient
except ImportError as missing:
    raise ConfigError(
        "A fleet needs the package nats-py. Install it: pip install 'opentabs-py[fleet]'"
    ) from missing

logger = logging.getLogger(__name__)

CONNECT_WITHIN: Final = 5.0  # s
TRIES: Final = 3  # of each address, before the first connection
RECONNECT_EVERY: Final = 0.25  # s
PING_EVERY: Final = 2  # s; two unanswered pings end a connection
_NO_RESPONDERS: Final = "503"


@dataclass(frozen=True, slots=True)
class Received:
    """A message of a subscription.

    Attributes:
        subject: Where it was published.
        data: Its content.
        absent: Not a message: NATS reports that no process is subscribed to the subject.
        reply: Where an answer is expected; empty if nowhere.
    """

    subject: str
    data: bytes
    absent: bool
    reply: str


class NatsLink:
    """A connection that always reconnects, once it was established.

    What is published while it is down is dropped: those who need to know that something arrived
    repeat it; see `core/fleet/channel.py`.

    Args:
        options: How to connect.

    Attributes:
        subjects: The subjects of the fleet.
        relinked: Called whenever the connection was interrupted and is back.
    """

    def __init__(self, options: FleetOptions) -> None:
        self.subjects = Subjects(options.fleet)
        self.relinked: Listeners[[]] = Listeners("reconnects to NATS")
        self.options = options
        self._client = NatsClient()
        self._pacer = Pacer()
        self._may_publish = asyncio.Event()
        self._all_published = asyncio.Event()
        self._all_published.set()
        self._pings: set[asyncio.Task[None]] = set()
        self._last_error = ""
        self._failures = 0
        self._is_refused = False
        self._is_linked = False
        self._connecting: anyio.CancelScope | None = None

    @property
    def connected(self) -> bool:
        """Whether it is connected now, and those that `relinked` notifies know that."""
        # The client is connected a round trip before it says so. Until then, liveness would take
        # the time that the connection was down for the silence of others.
        return self._is_linked and self._client.is_connected

    def publish(self, subject: str, data: bytes = b"", reply: str = "") -> bool:
        """Publish a message soon; return False if it is dropped, because the connection is down."""
        if not self.connected:
            return False
        self._pacer.add(Outgoing(subject, data, reply))
        self._all_published.clear()
        self._may_publish.set()
        return True

    async def flush(self) -> None:
        """Wait until what was published has reached NATS, or until the connection is down."""
        with anyio.move_on_after(CONNECT_WITHIN), suppress(NatsError, OSError):
            await self._all_published.wait()
            await self._client.flush()

    async def subscribe(self, subject: str, handle: Callable[[Received], None]) -> Subscription:
        """Call a function with each message to a subject, also after reconnects, in order.

        Args:
            subject: With or without wildcards.
            handle: Must not block; an exception is logged.
        """

        async def receive(message: Msg) -> None:
            headers = message.headers or {}
            absent = headers.get("Status") == _NO_RESPONDERS
            try:
                handle(Received(message.subject, message.data, absent, message.reply))
            except Exception:
                logger.exception("A message of the fleet could not be handled")

        client: Any = self._client  # whose types are partial
        subscription: Subscription = await client.subscribe(subject, cb=receive)
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; it has ended already if the connection is closed."""
        with suppress(NatsError, OSError):
            await subscription.unsubscribe()

    async def run(self) -> None:
        """Publish what is to be published, until cancelled."""
        try:
            while True:
                await self._may_publish.wait()
                self._may_publish.clear()
                await self._publish_what_may_be()
        finally:
            self._stop_pinging()

    async def _publish_what_may_be(self) -> None:
        while True:
            if self._pacer.ping_due:
                await self._ping()
            message = self._pacer.take()
            if message is None:
                break
            await self._publish(message)
        if self._pacer.empty:
            self._all_published.set()

    async def _publish(self, message: Outgoing) -> None:
        try:
            await self._client.publish(message.subject, message.data, message.reply)
        except MaxPayloadError:  # it will be sent again, in vain
            logger.warning("A message of %d bytes was not sent. %s", len(message.data), self._limit)
        except (NatsError, OSError) as error:
            logger.debug("Not published to %s: %s", message.subject, error)

    async def _ping(self) -> None:
        await asyncio.sleep(0)  # a turn for the client's task that writes what was published
        unwritten = self._client.pending_data_size
        self._pacer.handle_ping(anyio.current_time(), unwritten=unwritten)
        ping = asyncio.create_task(self._wait_for_pong())
        self._pings.add(ping)
        ping.add_done_callback(self._pings.discard)

    async def _wait_for_pong(self) -> None:
        """Wait until NATS has read what was published."""
        while True:
            try:
                await self._client.flush()
            except NatsTimeoutError:
                continue
            except (NatsError, OSError):
                return  # it is down
            # Python 3.11 may return what has come in the moment of a cancellation.
            if asyncio.current_task() in self._pings:
                self._pacer.handle_pong(anyio.current_time())
                self._may_publish.set()
            return

    def _stop_pinging(self) -> None:
        for ping in self._pings:
            ping.cancel()
        self._pings.clear()

    async def open(self) -> None:
        """Connect.

        Raises:
            FleetError: NATS cannot be reached, refuses the connection, or accepts only messages
                that are too short; or the file with credentials cannot be used.
            ConfigError: A file with certificates cannot be used.
        """
        options = self.options
        # Of what is in the addresses, it would use nothing for other servers of the cluster.
        more: dict[str, Any] = {**options.login}
        if options.creds is not None:
            more["user_credentials"] = str(options.creds)
        if options.ca is not None or options.cert is not None:
            more["tls"] = _tls(options)
        try:
            with anyio.fail_after(CONNECT_WITHIN) as self._connecting:
                await self._client.connect(
                    options.urls,
                    name="opentabs",
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=cast("int", RECONNECT_EVERY),  # any number will do
                    ping_interval=PING_EVERY,
                    max_outstanding_pings=2,
                    error_cb=self._handle_error,
                    disconnected_cb=self._handle_disconnected,
                    reconnected_cb=self._handle_reconnected,
                    **more,
                )
            self._connecting = None
            self._is_linked = True
        except (NatsError, OSError, TimeoutError) as error:
            why = self._last_error or _text(error)
            with anyio.CancelScope(shield=True):
                await self._client.close()
            raise FleetError(
                f"Cannot connect to NATS at {options.addresses}: {why}. Check the address and the "
                "credentials, or start NATS: nats-server"
            ) from error
        if self._accepts_too_little:
            await self._client.close()
            raise FleetError(self._limit)

    @property
    def _accepts_too_little(self) -> bool:
        return self._client.max_payload < LONGEST_PACKET

    @property
    def _limit(self) -> str:
        """What NATS accepts, and what to do about it."""
        return (
            f"NATS at {self.options.addresses} accepts messages of {self._client.max_payload:,} "
            f"bytes at most, and a fleet needs {LONGEST_PACKET:,}. Set max_payload in the "
            "configuration of nats-server to 1MB, its default."
        )

    async def close(self) -> None:
        """Disconnect."""
        await self._client.close()

    async def _handle_error(self, error: Exception) -> None:
        # A server that refuses a connection may close it before its reason has been read.
        if not (isinstance(error, OSError) and self._is_refused):
            self._last_error = _text(error)
            self._is_refused = not isinstance(error, OSError)
        self._failures += 1
        if self._connecting is not None and self._failures > TRIES * len(self.options.urls):
            self._connecting.deadline = -inf  # it would keep trying
        logger.debug("NATS: %s", self._last_error)
        if "permissions violation" in self._last_error.lower():
            logger.warning(
                "NATS refused: %s. `opentabs fleet permissions` prints what each role needs.",
                self._last_error,
            )

    async def _handle_disconnected(self) -> None:
        if not self._client.is_closed:
            logger.warning("Disconnected from NATS at %s; reconnecting", self.options.addresses)
        self._is_linked = False
        self._stop_pinging()
        self._pacer.handle_disconnected()
        self._all_published.set()

    async def _handle_reconnected(self) -> None:
        logger.warning("Reconnected to NATS")
        if self._accepts_too_little:  # it may be another server, or configured again
            logger.error("%s", self._limit)
        self._is_linked = True
        self.relinked.notify()


@asynccontextmanager
async def nats_link(options: FleetOptions) -> AsyncGenerator[NatsLink]:
    """Connect to NATS, and disconnect at the end.

    Args:
        options: How to connect.

    Raises:
        FleetError: NATS cannot be reached, refuses the connection, or accepts only messages that
            are too short; or the file with credentials cannot be used.
        ConfigError: A file with certificates cannot be used.
    """
    link = NatsLink(options)
    with _without_tls_warnings():
        await link.open()
        # Not in a task group, which would wrap the caller's errors in a group.
        publishing = asyncio.create_task(link.run())
        try:
            yield link
        finally:
            publishing.cancel()
            with anyio.CancelScope(shield=True):
                await link.close()


@contextmanager
def _without_tls_warnings() -> Generator[None]:
    """Keep asyncio from warning at the end of each connection with TLS.

    nats-py's transport does not tell its protocol that it was upgraded to TLS.
    """

    def is_to_log(record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("returning true from eof_received()")

    of_asyncio = logging.getLogger("asyncio")
    of_asyncio.addFilter(is_to_log)
    try:
        yield
    finally:
        of_asyncio.removeFilter(is_to_log)


def _text(error: Exception) -> str:
    return str(error) or "there is no answer"


def _tls(options: FleetOptions) -> ssl.SSLContext:
    try:
        # Without a file, it trusts those of the system.
        context = ssl.create_default_context(cafile=options.ca)
    except OSError as error:  # which ssl.SSLError is
        raise ConfigError(f"Cannot use the certificates {options.ca}: {error}") from error
    if options.cert is not None:
        try:
            context.load_cert_chain(options.cert)
        except OSError as error:
            raise ConfigError(f"Cannot use the certificate {options.cert}: {error}") from error
    return context
