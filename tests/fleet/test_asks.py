"""The requests of an endpoint to workers."""

from typing import cast

import pytest

from opentabs_py.core.fleet.messages import CallAsk
from opentabs_py.fleet.asks import Asks
from opentabs_py.fleet.link import NatsLink
from tests.core.fleet.test_pool import worker
from tests.fleet.test_endpoint import FakeLink

pytestmark = pytest.mark.anyio


async def test_what_cannot_be_sent_is_not_asked() -> None:
    asks = Asks(cast("NatsLink", FakeLink()), "e" * 16, most=1000, on_lost=lambda _: None)
    lone_surrogate = CallAsk(tool="chat_send", arguments={"text": "\ud800"}, idle=1, ceiling=1)
    with pytest.raises(ValueError, match="surrogates"):
        await asks.ask(worker("a"), lone_surrogate)
    assert not asks._open


async def test_a_worker_that_is_gone_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    asks = Asks(cast("NatsLink", FakeLink()), "e" * 16, most=1000, on_lost=lambda _: None)
    asks.hold(worker("a"))
    asks._lose(worker("a").instance)
    assert caplog.messages == ["The worker a on h (pid 1) is gone"]
