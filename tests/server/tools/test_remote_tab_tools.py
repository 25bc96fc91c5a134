"""The tabs that an endpoint's clients open in the workers of its fleet."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from types import SimpleNamespace
from typing import Any, cast

import pytest

from opentabs_py.calling.call import ToolCall
from opentabs_py.core.fleet.messages import Announcement
from opentabs_py.core.limits import Limits
from opentabs_py.fleet.endpoint import Fleet
from opentabs_py.server.tools.remote_tab_tools import RemoteTabsOpen
from tests.core.fleet.test_pool import worker

pytestmark = pytest.mark.anyio


class FakeFleet:
    """One worker, whose browser opens tabs; `works` are the plugins that are reported to work."""

    def __init__(self, *, serving: Sequence[str], works: Sequence[str]) -> None:
        self._worker = worker("a")
        self.directory = SimpleNamespace(usable=[self._worker])
        self.catalog = SimpleNamespace(serving=lambda _worker, _url: serving)
        self.own_tabs = SimpleNamespace(workers=lambda _client: ())
        self.owned: list[AbstractSet[str]] = []
        self._works = works

    def least_busy(self, workers: Sequence[Announcement]) -> Announcement:
        return workers[0]

    async def call_in(self, _worker: Announcement, _tool: str, _call: ToolCall) -> Any:
        plugins = [{"name": name, "readiness": "ready"} for name in self._works]
        return {"tabId": 9, "plugins": plugins}

    def own(
        self, _client: str | None, _tab: int, _worker: Announcement, plugins: AbstractSet[str]
    ) -> None:
        self.owned.append(plugins)


@pytest.mark.parametrize(
    ("serving", "works"),
    [(["chat"], []), ([], ["chat"]), (["chat"], ["chat"])],
    ids=["that did not load", "of a build that is not known yet", "that is ready"],
)
async def test_a_tab_is_for_the_plugins_of_its_page(
    serving: Sequence[str], works: Sequence[str]
) -> None:
    fleet = FakeFleet(serving=serving, works=works)
    tool = RemoteTabsOpen(cast("Fleet", fleet))
    await tool.prepare(ToolCall({"url": "https://chat.example/"}, Limits()))()
    assert fleet.owned == [{"chat"}]
