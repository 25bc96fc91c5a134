"""Directories for our own files: nobody else may put anything into them."""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from opentabs_py.audit.file import AuditFile
from opentabs_py.browser.driver import NODE_CACHE, compile_cache
from opentabs_py.config.files import locked
from opentabs_py.config.paths import audit_file, cache_dir, data_dir
from opentabs_py.config.settings_file import set_permission
from opentabs_py.consent.reviews import Reviews
from opentabs_py.core.audit.retention import Retention
from opentabs_py.daemon.state import claim
from opentabs_py.plugins.manifest_cache import ManifestCache
from tests.audit.records import an_entry
from tests.daemon.servers import COMMAND

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The home of a user whose umask forbids nobody anything."""
    home = tmp_path / "home"
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    monkeypatch.delenv(NODE_CACHE, raising=False)
    before = os.umask(0)
    yield home
    os.umask(before)


@contextmanager
def audit() -> Generator[None]:
    file = AuditFile(audit_file(), retention=Retention())
    file.add([an_entry()])
    yield
    file.close()


@contextmanager
def review() -> Generator[None]:
    Reviews(data_dir() / "reviews").approve("chat", "1.0", "digest", {})
    yield


@contextmanager
def permission() -> Generator[None]:
    set_permission("default", "ask")
    yield


WRITERS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "audit": audit,
    "claim": lambda: claim("work", COMMAND),
    "compile cache": compile_cache,
    "lock": lambda: locked(Path("plugin")),
    "manifests": lambda: ManifestCache(cache_dir() / "manifests.sqlite", version="1"),
    "review": review,
    "permission": permission,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_directories_are_their_owners_whatever_the_umask(home: Path, writer: str) -> None:
    with WRITERS[writer]():
        created = [home, *(each for each in home.rglob("*") if each.is_dir())]
        modes = {each.stat().st_mode & 0o777 for each in created}
    assert len(created) > 1
    assert modes == {0o700}
