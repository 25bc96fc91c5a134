"""The console shows the calls of earlier servers, page by page."""

from pathlib import Path

import anyio
import pytest

from opentabs_py.audit.file import AuditFile
from opentabs_py.console.history import AT_ONCE
from opentabs_py.console.routes import API
from opentabs_py.core.audit.retention import Retention
from tests.audit.records import an_entry
from tests.console.served import ServedConsole
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio
HISTORY = f"{API}history"


def write_audit(path: Path, count: int) -> None:
    file = AuditFile(path, retention=Retention(days=1e9))
    failed = {"outcome": "failed", "code": "NOT_FOUND"}
    by = {"client": "agent 1.0", "allowed": "client: once", "tab_id": 7}
    file.add([an_entry(number, call_id=f"c{number}", **failed, **by) for number in range(count)])
    file.close()


async def test_calls_of_the_audit_come_in_pages_the_newest_first(tmp_path: Path) -> None:
    write_audit(tmp_path / "audit.sqlite", AT_ONCE + 5)
    served = ServedConsole(audit=tmp_path / "audit.sqlite")
    with anyio.fail_after(PATIENT):
        async with served.browser() as browser:
            first = (await browser.get(HISTORY)).json()
            last = first["calls"][-1]["number"]
            second = (await browser.get(f"{HISTORY}?before={last}")).json()
    assert [each["id"] for each in first["calls"][:2]] == [f"c{AT_ONCE + 4}", f"c{AT_ONCE + 3}"]
    assert (len(first["calls"]), first["more"]) == (AT_ONCE, True)
    assert [each["id"] for each in second["calls"]] == ["c4", "c3", "c2", "c1", "c0"]
    assert not second["more"]
    call = second["calls"][0]
    assert (call["state"], call["error"]["code"]) == ("failed", "NOT_FOUND")
    assert (call["client"], call["allowed"], call["tab"]) == ("agent 1.0", "client: once", 7)


async def test_without_an_audit_there_is_nothing_and_a_broken_one_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"not a database at all, and long enough" * 100)
    with anyio.fail_after(PATIENT):
        async with ServedConsole().browser() as browser:
            assert (await browser.get(HISTORY)).json() == {"calls": [], "more": False}
        async with ServedConsole(audit=broken).browser() as browser:
            answer = await browser.get(HISTORY)
    assert answer.status_code == 503
    assert "Cannot read the audit" in answer.json()["error"]


@pytest.mark.parametrize("before", ["x", "-1", "1.5", "9" * 20])
async def test_a_page_that_is_not_a_number_is_refused(before: str) -> None:
    with anyio.fail_after(PATIENT):
        async with ServedConsole().browser() as browser:
            assert (await browser.get(f"{HISTORY}?before={before}")).status_code == 400


async def test_only_a_signed_in_browser_reads_the_history() -> None:
    with anyio.fail_after(PATIENT):
        async with ServedConsole().browser(signed_in=False) as stranger:
            assert (await stranger.get(HISTORY)).status_code == 401
