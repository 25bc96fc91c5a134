"""Secrets that agents may type into pages, and may not read."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Self

from opentabs_py.core import codes
from opentabs_py.core.encodings import encodings_of
from opentabs_py.errors import ConfigError, ToolError


class Secrets:
    """The secrets of a server.

    Args:
        values: The values, by name.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._names: dict[str, str] = {}  # by value without whitespace, in whatever encoding
        forms: set[str] = set()
        for name, value in values.items():
            for text in (value, re.sub(r"\r?\n", "\r\n", value)):  # which forms send
                for form in (encode(text) for encode in encodings_of(text)):
                    if key := "".join(form.split()):
                        self._names.setdefault(key, name)
                        forms.add(form)
        # The longest first: one value may begin with another.
        patterns = map(_pattern_of, sorted(forms, key=len, reverse=True))
        self._pattern = re.compile("|".join(patterns)) if forms else None

    @classmethod
    def from_environment(cls, names: Sequence[str]) -> Self:
        """Return the secrets in these environment variables.

        Raises:
            ConfigError: One of them has no value.
        """
        missing = [name for name in names if not os.environ.get(name)]
        if missing:
            raise ConfigError(
                f"The secret {missing[0]} has no value: set the environment variable "
                f"{missing[0]}, or leave it out of `secrets`."
            )
        return cls({name: os.environ[name] for name in names})

    def value(self, name: str) -> str:
        """Return the value of a secret.

        Raises:
            ToolError: There is none of that name.
        """
        value = self._values.get(name)
        if value is None:
            known = ", ".join(sorted(self._values)) or "none"
            raise ToolError(
                f"The server has no secret {name!r}; it has: {known}.", codes.UNKNOWN_SECRET
            )
        return value

    def mask(self, text: str) -> str:
        """Return a string with the names of secrets in place of their values.

        Cut a string only after this, or a part of a secret at the cut would stay.
        """
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: _shown(self._names["".join(found[0].split())]), text)

    def is_mask(self, text: str) -> bool:
        """Return whether a string is what `mask` returns for the value of a secret."""
        return any(text == _shown(name) for name in self._values)


def _pattern_of(form: str) -> str:
    """Return what finds a value however its whitespace is shown.

    A snapshot has one space for any whitespace, and a field of one line leaves out line breaks.
    """
    parts = re.split(r"(\s+)", form.strip())
    return "".join(
        (r"\s*" if "\n" in part else r"\s+") if index % 2 else re.escape(part)
        for index, part in enumerate(parts)
    )


def _shown(name: str) -> str:
    return f"<secret {name}>"
