"""Channels over a connection that records what is published."""

from typing import cast

import pytest

from opentabs_py.core.fleet.channel import Packet
from opentabs_py.core.fleet.congestion import CongestionWindow
from opentabs_py.fleet.channels import NatsChannel
from opentabs_py.fleet.link import NatsLink

pytestmark = pytest.mark.anyio


class RecordingLink:
    """A connection on which nobody responds."""

    def __init__(self) -> None:
        self.published: list[Packet] = []

    def publish(self, _subject: str, data: bytes = b"", _reply: str = "") -> bool:
        self.published.append(Packet.decode(data))
        return True


async def test_a_closed_channel_sends_nothing_more() -> None:
    link = RecordingLink()
    channel = NatsChannel(
        cast("NatsLink", link), "there", longest_message=1000, window=CongestionWindow()
    )
    channel.send(b"before")
    channel.close()
    channel.send(b"after")
    channel.relink()
    assert [packet.piece for packet in link.published] == [b"before"]
    assert channel.queued == len(b"before")
