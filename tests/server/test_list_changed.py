"""Clients of both eras, over both transports, are notified when the tool list changes."""

from collections.abc import Callable

import pytest

from tests.clients import CHANGED, hearing
from tests.served import INITIALIZED, Served, raw_client
from tests.waiting import until_all_wait

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    """The eras."""
    return str(request.param)


async def test_a_server_says_that_its_list_can_change(mode: str) -> None:
    async with Served().over_http() as url, hearing(url, mode) as heard:
        capability = heard.client.server_capabilities.tools
    assert capability is not None
    assert capability.list_changed is True


@pytest.mark.parametrize("transport", ["http", "streams"])
async def test_a_client_is_notified_of_a_change_and_finds_it_in_the_list(
    mode: str, transport: str
) -> None:
    served = Served()
    async with (
        served.over_http() as url,
        hearing(url if transport == "http" else served.server, mode) as heard,
    ):
        assert await heard.tools() == ["chat_send"]

        served.serve("send", "read")
        await heard.wait_for_change()
        assert await heard.tools() == ["chat_read", "chat_send"]

        served.serve("read")
        await heard.wait_for_change()
        assert await heard.tools() == ["chat_read"]


@pytest.mark.parametrize(
    "change",
    [
        lambda served: served.serve("read"),
        lambda served: served.serve("send", description="Does it better."),
        lambda served: served.serve("send", displayName="Another"),
        lambda served: served.serve("send", output_schema={"type": "object", "required": ["a"]}),
        lambda served: served.serve(
            "send", input_schema={"type": "object", "properties": {"a": {"type": "string"}}}
        ),
    ],
    ids=["name", "description", "title", "output", "input"],
)
async def test_whatever_clients_see_of_a_tool_counts(change: Callable[[Served], None]) -> None:
    served = Served()
    calls: list[None] = []
    served.registry.subscribe(lambda: calls.append(None))
    change(served)
    assert len(calls) == 1
    change(served)
    assert len(calls) == 1


async def test_changes_that_clients_do_not_see_are_not_notified(mode: str) -> None:
    served = Served()
    async with hearing(served.server, mode) as heard:
        served.serve("send", icon="bell", group="Messages", summary="Sends")
        served.serve("send", "read")
        await heard.wait_for_change()
        assert await heard.tools() == ["chat_read", "chat_send"]  # all before it has arrived
        assert not heard.has_heard


async def test_a_client_that_left_is_forgotten(mode: str) -> None:
    served = Served()
    of_servers = len(served.registry._listeners)
    async with served.over_http() as url:
        async with hearing(url, mode):
            assert len(served.registry._listeners) == of_servers + 1
        async with hearing(url, mode) as heard:
            served.serve("read")
            await heard.wait_for_change()
            assert len(served.registry._listeners) == of_servers + 1


async def test_a_client_that_does_not_read_holds_up_no_other(mode: str) -> None:
    served = Served()
    async with raw_client(served.server) as slow, hearing(served.server, mode) as heard:
        await slow.say(INITIALIZED)
        for tools in (["a"], ["b"], ["c"]):
            served.serve(*tools)  # not a coroutine: a reload waits for no client
            await heard.wait_for_change()
            assert await heard.tools() == [f"chat_{tool}" for tool in tools]


async def test_changes_that_a_slow_client_missed_are_sent_as_one() -> None:
    served = Served()
    async with raw_client(served.server) as slow:
        await slow.say(INITIALIZED)
        await slow.say(INITIALIZED)  # subscribing twice duplicates nothing
        await until_all_wait()
        for number in range(10):
            served.serve(f"tool{number}")
            await until_all_wait()

        told = [await slow.read() for _ in range(3)]  # one was read ahead, one was in transit
        await slow.say({"id": 2, "method": "ping"})
        answer = await slow.read()

    assert [each.get("method") for each in told] == [CHANGED] * 3
    assert answer["id"] == 2
