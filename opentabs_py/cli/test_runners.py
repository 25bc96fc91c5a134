"""The programs that run tests: pytest, and Node."""

from collections.abc import Sequence
from importlib.util import find_spec

from opentabs_py.errors import OpenTabsError


def check_pytest() -> None:
    """Raise if the tests in the browser cannot run.

    Raises:
        OpenTabsError: pytest is not installed.
    """
    if find_spec("pytest") is None:
        raise OpenTabsError(
            "pytest is not installed. Install it with `pip install 'opentabs-py[test]'`."
        )


def node_command(files: Sequence[str], *options: str, quiet: bool = False) -> list[str]:
    """Return the command that runs tests in Node, after installing what TypeScript needs.

    Raises:
        BuildError: There is no Node, or npm could not install the rest.
    """
    from opentabs_py.cli.building import show_toolchain
    from opentabs_py.plugins.toolchain import find_node

    node, _ = find_node()
    typescript: list[str] = []
    if any(file.endswith(".ts") for file in files):
        typescript = show_toolchain(quiet=quiet).typescript_options
    # Without a terminal, as in CI, Node before 23 reports in another format by default.
    return [str(node), *typescript, *options, "--test", "--test-reporter", "spec", *files]
