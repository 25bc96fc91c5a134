"""A site with a service worker is recorded as its pages saw it, and replayed without the site."""

import json
from pathlib import Path

from e2e.sites.recorded_site import write_notes_plugin
from e2e.sites.test_recordings import record, run_suite, serving
from e2e.sites.worker_site import WorkerSite
from opentabs_py.recording.files import read_recording

NAMES = ("cached", "passed", "made", "direct", "passed")
SCRIPT = """
import json
from pathlib import Path

async def use(page, opentabs):
    seen = []
    for path in ("", "again"):
        if path:
            await page.goto(page.url + path)
        await page.wait_for_function("document.body?.dataset.seen !== undefined")
        seen.append(await page.evaluate("document.body.dataset.seen"))
    Path("tests/seen.json").write_text(json.dumps(seen))
"""


def test_a_site_with_a_service_worker_is_recorded_and_replayed(tmp_path: Path) -> None:
    plugin = write_notes_plugin(tmp_path / "notes")
    (plugin / "tests").mkdir()
    (plugin / "use.py").write_text(SCRIPT)
    with serving(WorkerSite()) as url:
        done = record(plugin, url, "--script", "use.py", "--out", "tests/worker.har")
    assert done.returncode == 0, done.stderr
    exchanges = read_recording(plugin / "tests" / "worker.har").exchanges
    assert [each.request.url.removeprefix(url) for each in exchanges] == [
        path for page in ("", "again") for path in (page, *(f"api/{name}" for name in NAMES))
    ]
    bodies = [each.response and each.response.body for each in exchanges]
    assert all(bodies)
    seen = json.loads((plugin / "tests" / "seen.json").read_text())
    assert '["made",200,{"made":true}]' in seen[0]
    assert '["passed",200,{"passed":4}]' in seen[1]

    ran = run_suite(plugin, "service_worker")

    assert ran["test_pages_get_what_they_got"].outcome == "passed", ran.output
