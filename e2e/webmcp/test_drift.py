"""Tools that a page registers are recorded, replayed and verified like those of plugins."""

from collections.abc import Generator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from e2e.kit.runs import prepare, run
from e2e.sites.test_recordings import record, serving
from e2e.sites.test_verify import opentabs_verify

PAGE = """<!doctype html><title>Stock</title><script>
document.modelContext?.registerTool({
  name: "%s",
  description: "Look up how many of a thing are left.",
  inputSchema: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
  annotations: { readOnlyHint: true },
  async execute({ id }, { reportProgress }) {
    reportProgress?.({ message: "Asking" });
    const answer = await fetch(`/api/stock/${id}`);
    return await answer.json();
  },
});
</script>"""
USE = """
async def use(page, opentabs):
    _, [stock] = await opentabs.page_tools(page.url)
    await opentabs.call(stock.name, {"id": 3})
"""


class Shop:
    """A site whose page has a tool.

    Attributes:
        tool: The tool's name.
        left: The member in which the site returns how many are left.
    """

    def __init__(self) -> None:
        self.tool = "stock"
        self.left = "left"

    def app(self) -> Starlette:
        async def home(_: Request) -> HTMLResponse:
            return HTMLResponse(PAGE % self.tool)

        async def stock(request: Request) -> JSONResponse:
            return JSONResponse({"id": int(request.path_params["id"]), self.left: 7})

        return Starlette(routes=[Route("/", home), Route("/api/stock/{id}", stock)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Path, Shop]]:
    """A directory with a recording of the shop, which keeps running."""
    directory, shop = tmp_path_factory.mktemp("shop"), Shop()
    (directory / "pyproject.toml").write_text('[tool.opentabs]\nwebmcp = ["http://127.0.0.1/*"]\n')
    (directory / "use.py").write_text(USE)
    with serving(shop) as url:
        done = record(directory, url, "--script", "use.py", "--out", "stock.har")
        assert done.returncode == 0, done.stderr
        yield directory, shop


def test_a_recording_is_replayed(made: tuple[Path, Shop]) -> None:
    directory, shop = made
    shop.left = "never asked for"

    prepare(directory, "page_tools")
    done = run(directory)

    assert done.outcomes == {"test_stock": "passed"}, done.output


@pytest.mark.parametrize(
    ("tool", "left", "code", "text"),
    [
        ("stock", "left", 0, "1 as recorded"),
        ("stock", "rest", 1, "left is now called rest"),
        ("stocks", "left", 1, "page_127_0_0_1_stock does not get ready on the page"),
    ],
    ids=["unchanged", "the site's answer", "the tool's name"],
)
def test_a_change_is_found(
    made: tuple[Path, Shop], tool: str, left: str, code: int, text: str
) -> None:
    directory, shop = made
    shop.tool, shop.left = tool, left

    done = opentabs_verify(directory, "stock.har")

    assert (done.returncode, text in done.stdout) == (code, True), (done.stdout, done.stderr)
