"""The address in an extension that several servers use."""

import json
import socket
from pathlib import Path

import anyio
import pytest

from opentabs_py.browser.stage import StagedExtension, stage_extension
from opentabs_py.session.browsers import address
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "LOOK_AGAIN", 0.001)


def server_in(directory: Path) -> str:
    server: str = json.loads((directory / "config.json").read_bytes())["server"]
    return server


async def test_it_is_written_again_once_the_server_that_replaced_it_has_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    read = StagedExtension.read_address

    def count(self: StagedExtension) -> str:
        nonlocal looks
        looks += 1
        return read(self)

    monkeypatch.setattr(StagedExtension, "read_address", count)
    staged = stage_extension(tmp_path, port=1, secret="s" * 64)
    with socket.create_server(("127.0.0.1", 0)) as other:
        theirs = other.getsockname()[1]
        stage_extension(tmp_path, port=theirs, secret="s" * 64)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(address.keep_address, staged)
            with anyio.fail_after(PATIENT):
                while looks < 3:  # noqa: ASYNC110 (counted in a thread)
                    await anyio.sleep(0.001)
                assert server_in(tmp_path) == f"127.0.0.1:{theirs}"
                other.close()
                while server_in(tmp_path) != "127.0.0.1:1":  # noqa: ASYNC110
                    await anyio.sleep(0.001)
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("content", [None, b"{", b"[]"], ids=["none", "half", "of another kind"])
async def test_it_is_written_again_where_none_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    attempts: list[object] = []
    write = StagedExtension.write_address

    def note(self: StagedExtension) -> None:
        attempts.append(self)
        write(self)

    directory, elsewhere = tmp_path / "extension", tmp_path / "elsewhere"
    staged = stage_extension(directory, port=1)
    monkeypatch.setattr(StagedExtension, "write_address", note)
    directory.rename(elsewhere)  # the user may do that, and bring it back
    if content is None:
        (elsewhere / "config.json").unlink()
    else:
        (elsewhere / "config.json").write_bytes(content)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(address.keep_address, staged)
        with anyio.fail_after(PATIENT):
            while not attempts:  # noqa: ASYNC110 (made in a thread)
                await anyio.sleep(0.001)
            elsewhere.rename(directory)
            while staged.read_address() != "127.0.0.1:1":  # noqa: ASYNC110
                await anyio.sleep(0.001)
        tasks.cancel_scope.cancel()
