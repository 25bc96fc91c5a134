"""Everything in docs/drift.md works as shown, in the order shown."""

import re
from pathlib import Path
from shutil import copytree

import pytest
from anyio.from_thread import start_blocking_portal
from starlette.types import Message, Receive, Scope, Send

from e2e.documents import ROOT, Block, read_blocks, run
from opentabs_py.demo import create_demo_site, demo_plugin_dir
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http

pytestmark = pytest.mark.timeout(300)  # a fixture runs all commands
BLOCKS = read_blocks((ROOT / "docs" / "drift.md").read_text())
SITE = "http://127.0.0.1:8000/"
MARKS = {"file", "console", "fails", "renamed", "generate"}


class Chat:
    """The site, which can rename its messages' authors."""

    def __init__(self) -> None:
        self._site = create_demo_site(page_delay=0.01)
        self.is_renamed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_renamed(message: Message) -> None:
            if "body" in message:
                message["body"] = message["body"].replace(b'"author"', b'"writer"')
            await send(message)

        await self._site(scope, receive, send_renamed if self.is_renamed else send)


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Block, str]]:
    """The output of each command, with the site's address as in the document."""
    plugin = tmp_path_factory.mktemp("drift") / "demo"
    copytree(demo_plugin_dir(), plugin)
    chat, port, url = Chat(), 0, ""
    printed: list[tuple[Block, str]] = []
    for block in BLOCKS:
        chat.is_renamed = block.mark == "renamed"
        if "opentabs" not in block.text.partition("\n")[0]:  # pytest works without the site
            printed.append((block, follow(block, plugin, url)))
            continue
        listener = bind("127.0.0.1", port)
        port = listener.getsockname()[1]
        url = f"http://127.0.0.1:{port}/"
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(serve_http(chat, listener)),
        ):
            printed.append((block, follow(block, plugin, url)))
    return printed


def follow(block: Block, plugin: Path, url: str) -> str:
    """Run a block, and return its output."""
    if block.mark == "file":
        file = plugin / block.argument
        file.parent.mkdir(exist_ok=True)
        file.write_text(block.text)
        return ""
    command = f"pytest {block.argument}" if block.mark == "fails" else block.session[0]
    directory = plugin / block.argument if block.mark == "generate" else plugin
    done = run(["bash", "-c", command.replace(SITE, url)], directory, COLUMNS="100")
    return (done.stdout + done.stderr).replace(url, SITE)


def test_every_block_says_how_it_is_run() -> None:
    assert len(BLOCKS) == 12
    assert [block for block in BLOCKS if block.mark not in MARKS] == []


def test_every_command_prints_what_is_shown(came: list[tuple[Block, str]]) -> None:
    for block, output in came:
        if block.mark == "file":
            continue
        shown = block.text if block.mark == "fails" else block.session[1]
        for line in shown.splitlines():
            # How often a page scrolls varies.
            words = [re.sub(r"\d+", r"\\d+", re.escape(word)) for word in line.split()]
            assert re.search(r"\s+".join(words), output), f"{line}\n{output}"
