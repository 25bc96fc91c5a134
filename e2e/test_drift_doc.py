"""Everything that docs/drift.md shows works as it is shown, in the order it is shown in."""

import re
from pathlib import Path
from shutil import copytree

import pytest
from anyio.from_thread import start_blocking_portal

from e2e.documents import ROOT, Block, read_blocks, run
from opentabs_py.demo import create_demo_site, demo_plugin_dir
from opentabs_py.server.http import serve_http
from opentabs_py.server.listen import bind

BLOCKS = read_blocks((ROOT / "docs" / "drift.md").read_text())
SITE = "http://127.0.0.1:8000/"
MARKS = {"file", "console", "fails"}


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Block, str]]:
    """What each command printed, with the address of the site as in the document."""
    plugin = tmp_path_factory.mktemp("drift") / "demo"
    copytree(demo_plugin_dir(), plugin)
    listener = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    printed: list[tuple[Block, str]] = []
    with start_blocking_portal() as portal:
        app = create_demo_site(page_delay=0.01)
        with portal.wrap_async_context_manager(serve_http(app, listener)):
            printed += [(block, follow(block, plugin, url)) for block in BLOCKS[:2]]
    # The site is not there any more.
    return printed + [(block, follow(block, plugin, url)) for block in BLOCKS[2:]]


def follow(block: Block, plugin: Path, url: str) -> str:
    """Do what a block says, and return what it printed."""
    if block.mark == "file":
        file = plugin / block.argument
        file.parent.mkdir(exist_ok=True)
        file.write_text(block.text)
        return ""
    command = block.session[0] if block.mark == "console" else f"pytest {block.argument}"
    done = run(["bash", "-c", command.replace(SITE, url)], plugin)
    return (done.stdout + done.stderr).replace(url, SITE)


def test_every_block_says_how_it_is_run() -> None:
    assert len(BLOCKS) == 7
    assert [block for block in BLOCKS if block.mark not in MARKS] == []


def test_every_command_prints_what_is_shown(came: list[tuple[Block, str]]) -> None:
    for block, output in came:
        if block.mark == "file":
            continue
        shown = block.session[1] if block.mark == "console" else block.text
        for line in shown.splitlines():
            # How often a page has scrolled is its own affair.
            words = [re.sub(r"\d+", r"\\d+", re.escape(word)) for word in line.split()]
            assert re.search(r"\s+".join(words), output), f"{line}\n{output}"
