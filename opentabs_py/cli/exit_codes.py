"""The commands' exit codes; scripts rely on them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded only once Ctrl-C works during an import
    from opentabs_py.errors import OpenTabsError

TOOL_FAILED, USAGE, CHAIN_FAILED, INTERRUPTED = 1, 2, 3, 130
BUILD_FAILED = SCRIPT_FAILED = TOOL_FAILED  # the user's own code is at fault
NO_TESTS = 5  # pytest's own
OF_CALL = {None: 0, "tool": TOOL_FAILED, "caller": USAGE, "chain": CHAIN_FAILED}  # by what failed


def code_of_signal(number: int) -> int:
    """Return the exit code of a command that a signal ends, as shells have it."""
    return 128 + number


def code_of(error: "OpenTabsError") -> int:
    """Return the exit code of a command that ends with an error."""
    from opentabs_py import errors

    usage_errors = (
        *(errors.CallRefusedError, errors.ConfigError, errors.PluginError),
        *(errors.RecordingError, errors.ReportError, errors.TraceError),
    )
    return USAGE if isinstance(error, usage_errors) else CHAIN_FAILED
