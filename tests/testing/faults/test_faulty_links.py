"""Messages with faults on the extension's socket."""

from collections.abc import Callable

import anyio
import pytest

from opentabs_py.core.fault_injection import Direction, Piece
from opentabs_py.testing.faults.faulty_links import FaultySocket
from tests.fakes import FakeSocket
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


async def test_a_message_whose_sending_is_cancelled_passes_its_faults_once(
    skip_time: Callable[[float], None],
) -> None:
    applied: list[tuple[Direction, str]] = []

    def apply(direction: Direction, text: str) -> list[Piece]:
        applied.append((direction, text))
        return [Piece('"one"'), Piece('"two"', after=300), Piece('"three"')]

    raw = FakeSocket()
    socket = FaultySocket(raw, apply)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(socket.send_text, "message")
        await until_all_wait()
        skip_time(200)
        tasks.cancel_scope.cancel()
    assert await raw.hear_frame() == '"one"'

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(socket.send_text, "message")
        await until_all_wait()
        skip_time(100)
        with anyio.fail_after(PATIENT):
            assert [await raw.hear_frame(), await raw.hear_frame()] == ['"two"', '"three"']
    assert applied == [("down", "message")]

    skip_time(1000)
    with anyio.move_on_after(0):
        await socket.send_text("message")
    assert applied == [("down", "message")] * 2
    raw.dispose()
