"""The commands' exit codes; scripts rely on them."""

TOOL_FAILED, USAGE, CHAIN_FAILED, INTERRUPTED = 1, 2, 3, 130
BUILD_FAILED = SCRIPT_FAILED = TOOL_FAILED  # the user's own code is at fault
NO_TESTS = 5  # pytest's own
OF_CALL = {None: 0, "tool": TOOL_FAILED, "caller": USAGE, "chain": CHAIN_FAILED}  # by what failed
