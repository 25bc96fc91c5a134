"""`pytest --opentabs-fuzz N`: a test for each tool of the plugin, instead of those in files."""

from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import anyio
import pytest

from opentabs_py.calling.listing import Listing
from opentabs_py.calling.plugin_listing import plugin_tool_listing
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import OpenTabsError
from opentabs_py.plugins.load import load_plugin
from opentabs_py.testing.building import build_if_stale, plugins_under_test
from opentabs_py.testing.fuzz.contract import reached_origin
from opentabs_py.testing.fuzz.errors import ContractError
from opentabs_py.testing.sync_session import SyncOpenTabs

NAME: Final = "fuzz"  # stands where other tests have their file
_WRITES: Final = (
    "it may change something: it has no readOnlyHint. Pass --writes (--opentabs-fuzz-writes)"
)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Put the tools of a plugin in the place of the tests of a directory."""
    report = yield
    if isinstance(collector, pytest.Directory) and _is_named(collector):
        module: Any = FuzzModule
        tools: pytest.Collector = module.from_parent(collector, path=collector.path / NAME)
        report.result = [tools]  # pyright: ignore[reportAttributeAccessIssue]
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Exit as for no test if every tool was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.exitstatus == pytest.ExitCode.OK and reporter is not None:
        done = {"passed", "failed", "error", "flaky"} & reporter.stats.keys()
        if not done:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def _is_named(collector: pytest.Directory) -> bool:
    """Return whether the command line names a directory."""
    base = collector.config.invocation_params.dir
    return any((base / each).resolve() == collector.path for each in collector.config.args)


class FuzzModule(pytest.Module):
    """A test for each tool of the plugin that contains a directory."""

    def _getobj(self) -> ModuleType:
        module = ModuleType(NAME)
        try:
            listings = [each for directory in self._plugins() for each in _listings(directory)]
        except OpenTabsError as error:
            raise self.CollectError(str(error)) from None
        calls: Any = self.config.getoption("opentabs_fuzz")
        seed: Any = self.config.getoption("opentabs_fuzz_seed")
        writes: Any = self.config.getoption("opentabs_fuzz_writes")
        for listing in listings:
            test = _test_of(listing, calls=calls, seed=seed)
            if not (writes or listing.is_read_only):
                test = pytest.mark.skip(reason=_WRITES)(test)
            setattr(module, test.__name__, test)
        return module

    def _plugins(self) -> list[Path]:
        directories = plugins_under_test(self.path.parent, load_settings())
        if not directories:
            raise self.CollectError(
                f"There is no plugin to fuzz: {self.path.parent} is not inside one. Set plugins = "
                '["..."] under [tool.opentabs] in pyproject.toml, or call expect_contract() in a '
                "test of your own."
            )
        return directories


def _listings(directory: Path) -> list[Listing]:
    anyio.run(build_if_stale, directory)
    manifest = load_plugin(directory).manifest
    return [plugin_tool_listing(manifest, tool) for tool in manifest.tools]


def _test_of(listing: Listing, *, calls: int, seed: int) -> Callable[..., None]:
    def test(opentabs: SyncOpenTabs) -> None:
        _check(opentabs, listing=listing, calls=calls, seed=seed)

    test.__name__ = test.__qualname__ = f"test_{listing.name}"
    test.__doc__ = f"Check the contract of {listing.name}."
    return test


def _check(opentabs: SyncOpenTabs, *, listing: Listing, calls: int, seed: int) -> None:
    """Open the plugin's start page, and check a tool there."""
    from opentabs_py.testing.fuzz.expecting import expect_contract

    loaded: list[str] = []
    opentabs.context.on("request", lambda request: loaded.append(request.url))
    try:
        page = opentabs.open_start_page(listing.owner)
    except OpenTabsError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    page.wait_for_load_state()
    # What the page itself loads from elsewhere, it may load again.
    elsewhere = {reached_origin(url) for url in loaded} - {None, reached_origin(page.url)}
    own = sorted(f"{origin}/*" for origin in elsewhere)
    try:
        expect_contract(opentabs.tool(listing.name), calls=calls, seed=seed, may_fetch=own)
    except ContractError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
