"""What a replay does with a request of a page."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from playwright.sync_api import Route

from opentabs_py.core.recording.exchange import Exchange, Recording, Request, Response
from opentabs_py.core.recording.replay import Index, Replay
from opentabs_py.testing.replays import SiteReplay

URL = "https://site.test/"
REDIRECT = Exchange(Request("GET", f"{URL}old"), Response(302, "", [("location", "/new")]))


@dataclass(eq=False)
class FakeRequest:
    """A request of a page's script."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    post_data_buffer: None = None
    resource_type: str = "fetch"

    def is_navigation_request(self) -> bool:
        return False


@dataclass
class FakeRoute:
    """A request that waits for its answer."""

    request: FakeRequest
    done: list[str] = field(default_factory=list[str])

    def continue_(self) -> None:
        self.done.append("sent to the site")

    def abort(self, _code: str) -> None:
        self.done.append("aborted")

    def fulfill(self, **_: Any) -> None:
        self.done.append("answered")


@pytest.mark.parametrize(("open_for_new", "done"), [(True, "sent to the site"), (False, "aborted")])
def test_a_redirect_whose_end_was_not_recorded_is_recorded_if_that_is_wanted(
    open_for_new: bool, done: str
) -> None:
    replay = Replay(Index(Recording(URL, [REDIRECT])))
    site = SiteReplay(
        replay, is_ours=lambda _: False, sleep=lambda _: None, timed=False,
        open_for_new=open_for_new,
    )  # fmt: skip
    route = FakeRoute(FakeRequest(f"{URL}old"))
    site._answer(cast("Route", route))
    assert route.done == [done]
    assert (route.request in site.answered) is not open_for_new
    assert [each.request.url for each in replay.unrecorded] == (
        [] if open_for_new else [f"{URL}new"]
    )
