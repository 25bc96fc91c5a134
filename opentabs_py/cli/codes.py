"""What the exit codes of commands mean; scripts rely on them."""

TOOL_FAILED, USAGE, CHAIN_FAILED, INTERRUPTED = 1, 2, 3, 130
BUILD_FAILED = TOOL_FAILED  # what was asked for was tried, and is at fault
NO_TESTS = 5  # pytest's own
