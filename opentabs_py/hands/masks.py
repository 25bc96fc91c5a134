"""Keep the values of secrets from agents."""

import re
from collections.abc import Mapping

from opentabs_py.core.encodings import encodings_of


class Masks:
    """Replaces the values of secrets by their names, in whatever encoding they appear.

    Args:
        secrets: The values, by name.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names: dict[str, str] = {}
        for name, value in secrets.items():
            for encode in encodings_of(value):
                self._names.setdefault(encode(value), name)
        # The longest first: one value may begin with another.
        forms = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, forms))) if forms else None

    def apply(self, text: str) -> str:
        """Return a string with the names of secrets in place of their values.

        Cut a string only after this, or a part of a secret at the cut would stay.
        """
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: f"<secret {self._names[found[0]]}>", text)
