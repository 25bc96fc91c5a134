"""The tools of a fleet, read from workers that may not respond, or respond with something else."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from opentabs_py.core.fleet.messages import (
    Announcement,
    ServedOwner,
    ToEndpoint,
    ToolJson,
    Tools,
    ToolsRequest,
    digest_of,
)
from opentabs_py.fleet.catalog import Catalog
from opentabs_py.fleet.requests import NotDeliveredError
from tests.core.fleet.test_pool import worker
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

PAGE = "https://chat.example/inbox"
OLD, NEW = (
    Tools(
        tools=[ToolJson(name=name, title="", description="", input_schema={"type": "object"})],
        patterns=["https://chat.example/*"],
    )
    for name in ("chat_old", "chat_new")
)


def serving(name: str, tools: Tools, started: float = 1.0, *, owner: str = "chat") -> Announcement:
    served = {owner: ServedOwner(digest=digest_of(tools), ready=1)}
    return worker(name, served=served, started=started)


class Fleet:
    """Workers that are requested for their tools: each responds as the test says, or has gone."""

    def __init__(self) -> None:
        self.answers: dict[str, Tools] = {}
        self.workers: list[Announcement] = []
        self.requested: list[str] = []

    async def request(
        self,
        worker: Announcement,
        message: ToolsRequest,  # noqa: ARG002
    ) -> ToEndpoint:
        self.requested.append(worker.name)
        await anyio.lowlevel.checkpoint()
        if worker.name not in self.answers:
            raise NotDeliveredError
        return self.answers[worker.name]


@asynccontextmanager
async def reading(fleet: Fleet) -> AsyncGenerator[Catalog]:
    catalog = Catalog(fleet, lambda: fleet.workers)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(catalog.run)
        await until_all_wait()
        yield catalog
        tasks.cancel_scope.cancel()


def names(catalog: Catalog) -> list[str]:
    return [entry.listing.name for entry in catalog.entries]


async def until_listed(catalog: Catalog, name: str) -> None:
    with anyio.fail_after(PATIENT):
        while names(catalog) != [name]:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("answers", [{}, {"a": OLD}])
async def test_a_worker_without_the_tools_that_it_announces_is_not_asked_again_at_once(
    answers: dict[str, Tools], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.catalog.AGAIN_AFTER", PATIENT)
    fleet = Fleet()
    fleet.answers = answers
    fleet.workers = [serving("a", NEW)]
    async with reading(fleet) as catalog:
        catalog.refresh()
        await until_all_wait()
    assert fleet.requested == ["a"]


async def test_another_worker_is_asked_at_once_for_tools_that_the_first_did_not_send() -> None:
    fleet = Fleet()
    fleet.answers = {"b": NEW}
    fleet.workers = [serving("a", NEW), serving("b", NEW)]
    async with reading(fleet) as catalog:
        assert names(catalog) == ["chat_new"]
    assert fleet.requested == ["a", "b"]


async def test_a_worker_that_did_not_answer_is_asked_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.catalog.LOOK_EVERY", 0.01)
    monkeypatch.setattr("opentabs_py.fleet.catalog.AGAIN_AFTER", 0.01)
    fleet = Fleet()
    fleet.workers = [serving("a", NEW)]
    async with anyio.create_task_group() as tasks:
        catalog = Catalog(fleet, lambda: fleet.workers)
        tasks.start_soon(catalog.run)
        with anyio.fail_after(PATIENT):
            while len(fleet.requested) < 2:
                await anyio.lowlevel.checkpoint()
        fleet.answers = {"a": NEW}
        await until_listed(catalog, "chat_new")
        tasks.cancel_scope.cancel()


async def test_a_build_that_is_never_listed_is_forgotten_with_its_last_worker() -> None:
    fleet = Fleet()
    fleet.answers = {"a": NEW, "b": NEW, "c": OLD}
    many = [serving("a", NEW), serving("b", NEW)]
    few = serving("c", OLD)
    fleet.workers = [*many, few]
    async with reading(fleet) as catalog:
        assert names(catalog) == ["chat_new"]
        assert catalog.serving(few, PAGE) == ["chat"]
        fleet.workers = many
        catalog.refresh()
        await until_all_wait()
        assert names(catalog) == ["chat_new"]
        assert catalog.serving(few, PAGE) == []


async def test_of_two_tools_with_the_same_name_one_is_listed_that_a_worker_serves_now(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fleet = Fleet()
    fleet.answers = {"a": NEW, "b": OLD, "c": NEW}
    fleet.workers = [
        serving("c", NEW, owner="the-second"),
        serving("a", NEW, owner="first"),
        serving("b", OLD, owner="other"),
    ]
    async with reading(fleet) as catalog:
        listed = {entry.listing.name: entry.listing.owner for entry in catalog.entries}
        assert len(catalog.entries) == 2
        assert listed == {"chat_new": "first", "chat_old": "other"}
        assert caplog.messages == [
            "Workers have two tools named chat_new: first's is listed, the-second's is left out"
        ]
        del fleet.workers[1]
        catalog.refresh()
        await until_all_wait()
        listed = {entry.listing.name: entry.listing.owner for entry in catalog.entries}
        assert listed == {"chat_new": "the-second", "chat_old": "other"}
