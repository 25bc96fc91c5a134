"""What the exit codes of commands mean; scripts rely on them."""

TOOL_FAILED, USAGE, CHAIN_FAILED, INTERRUPTED = 1, 2, 3, 130
