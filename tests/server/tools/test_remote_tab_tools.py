"""The tabs that an endpoint's clients open in the workers of its fleet."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from opentabs_py.calling.call import ToolCall
from opentabs_py.core.fleet.messages import Announcement
from opentabs_py.core.limits import Limits
from opentabs_py.errors import ChainError
from opentabs_py.fleet.endpoint import Fleet
from opentabs_py.server.tools.remote_tab_tools import RemoteTabsOpen
from tests.core.fleet.test_pool import worker
from tests.waiting import until_all_wait

pytestmark = pytest.mark.anyio


class FakeFleet:
    """Workers whose browsers open tabs; `works` are the plugins that are reported to work.

    Args:
        serving: The plugins that the workers have.
        works: Those that work in a new tab.
        usable: The workers that take calls.
        with_own_tabs: The workers in which the client has tabs, as they were then.
        without: The names of the workers that have none of the plugins.
    """

    def __init__(
        self,
        *,
        serving: Sequence[str] = ("chat",),
        works: Sequence[str] = (),
        usable: Sequence[Announcement] = (worker("a"),),
        with_own_tabs: Sequence[Announcement] = (),
        without: Sequence[str] = (),
    ) -> None:
        self.without = without
        self.directory = SimpleNamespace(usable=usable)
        self.catalog = SimpleNamespace(
            serving=lambda each, _url: serving if each.name not in self.without else ()
        )
        self.holdings = SimpleNamespace(workers=lambda _client: with_own_tabs)
        self.owned: list[AbstractSet[str]] = []
        self.called: list[Announcement] = []
        self.kept: list[Announcement] = []
        self.never = False
        self._works = works

    def least_busy(self, workers: Sequence[Announcement]) -> Announcement:
        return workers[0]

    async def call_in(self, worker: Announcement, _tool: str, _call: ToolCall) -> Any:
        self.called.append(worker)
        if self.never:
            await anyio.sleep_forever()
        plugins = [{"name": name, "readiness": "ready"} for name in self._works]
        return {"tabId": 9, "plugins": plugins}

    def keep(self, _client: str | None, worker: Announcement) -> None:
        self.kept.append(worker)

    def own(
        self, _client: str | None, _tab: int, _worker: Announcement, plugins: AbstractSet[str]
    ) -> None:
        self.owned.append(plugins)


async def open_tab(fleet: FakeFleet) -> None:
    tool = RemoteTabsOpen(cast("Fleet", fleet))
    await tool.prepare(ToolCall({"url": "https://chat.example/"}, Limits()))()


@pytest.mark.parametrize(
    ("serving", "works"),
    [(["chat"], []), ([], ["chat"]), (["chat"], ["chat"])],
    ids=["that did not load", "of a build that is not known yet", "that is ready"],
)
async def test_a_tab_is_for_the_plugins_of_its_page(
    serving: Sequence[str], works: Sequence[str]
) -> None:
    fleet = FakeFleet(serving=serving, works=works)
    await open_tab(fleet)
    assert fleet.owned == [{"chat"}]


async def test_a_client_s_next_tab_opens_where_its_last_one_is_as_that_worker_is_now() -> None:
    others, before, now = worker("a"), worker("b"), worker("b", running={"e" * 16: 2})
    fleet = FakeFleet(usable=[others, now], with_own_tabs=[before])
    await open_tab(fleet)
    assert fleet.called == [now]


async def test_no_tab_opens_in_a_worker_that_takes_no_more_calls() -> None:
    draining, other = worker("a"), worker("b")
    fleet = FakeFleet(usable=[other], with_own_tabs=[draining])
    await open_tab(fleet)
    assert fleet.called == [other]


async def test_a_tab_opens_in_a_worker_that_serves_its_page_before_one_with_others() -> None:
    own, other = worker("a"), worker("b")
    fleet = FakeFleet(usable=[own, other], with_own_tabs=[own], without=["a"])
    await open_tab(fleet)
    assert fleet.called == [other]


async def test_a_tab_of_a_page_that_no_worker_serves_opens_where_the_client_s_others_are() -> None:
    own, other = worker("b"), worker("a")
    fleet = FakeFleet(usable=[other, own], with_own_tabs=[own], without=["a", "b"])
    await open_tab(fleet)
    assert fleet.called == [own]


async def test_no_tab_opens_in_a_worker_without_browsers() -> None:
    with_tools_only, other = worker("a", browsers=0), worker("b")
    fleet = FakeFleet(usable=[with_tools_only, other], without=["a", "b"])
    await open_tab(fleet)
    assert fleet.called == [other]
    with pytest.raises(ChainError) as caught:
        await open_tab(FakeFleet(usable=[with_tools_only]))
    assert caught.value.detail.code == "NO_WORKER"


async def test_a_worker_may_have_a_tab_of_which_the_opening_was_cancelled() -> None:
    fleet = FakeFleet()
    fleet.never = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_tab, fleet)
        await until_all_wait()
        assert not fleet.kept
        tasks.cancel_scope.cancel()
    assert fleet.kept == fleet.called
