"""Sites for tests."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

from opentabs_py.demo import create_demo_site
from opentabs_py.server.http import serve_http
from opentabs_py.server.listen import bind
from opentabs_py.testing.thread import ServerThread

PAGE_DELAY = 0.01  # s per page of an export, so that its reports arrive one by one


@contextmanager
def serve_demo_site(thread: ServerThread) -> Generator[str]:
    """Serve a demo chat with its own history; yields its URL."""

    @asynccontextmanager
    async def serve() -> AsyncGenerator[str]:
        listener = bind("127.0.0.1", 0)
        async with serve_http(create_demo_site(page_delay=PAGE_DELAY), listener):
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"

    with thread.open(serve()) as url:
        yield url
