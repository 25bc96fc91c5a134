"""Splits what arrives of a run into lines; each is an event or a command."""

from typing import Final

LONGEST_LINE: Final = 32 * 1024 * 1024  # bytes; a list of 100,000 tests


class Lines:
    """Splits what arrives into lines; one that is too long is left out.

    Args:
        longest: The longest line, in bytes.

    Attributes:
        left_out: How many lines were left out.
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self.left_out = 0
        self._longest = longest
        self._begun = bytearray()
        self._skips = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are now complete, without their ends."""
        *ends, begun = data.split(b"\n")
        lines: list[bytes] = []
        for end in ends:
            self._add(end)
            if self._skips:
                self.left_out += 1
            else:
                lines.append(bytes(self._begun))
            self._begun.clear()
            self._skips = False
        self._add(begun)
        return lines

    def _add(self, part: bytes) -> None:
        if self._skips or len(self._begun) + len(part) > self._longest:
            self._skips = True
            self._begun.clear()
        else:
            self._begun += part
