"""Secrets that agents may type into pages, and may not read."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Self

from opentabs_py.core import codes
from opentabs_py.core.encodings import encodings_of
from opentabs_py.core.questions import host_of, shown_host
from opentabs_py.core.sites.match_patterns import serves
from opentabs_py.core.text import shorten
from opentabs_py.errors import ConfigError, ToolError


class Secrets:
    """The secrets of a server.

    Args:
        values: The values, by name.
        pages: Match patterns of the pages in which each may be typed; any page by default.
    """

    def __init__(
        self, values: Mapping[str, str], pages: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._values = values
        self._pages = pages or {}
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
    def from_environment(cls, pages: Mapping[str, Sequence[str]]) -> Self:
        """Return the secrets in environment variables.

        Args:
            pages: For each variable, match patterns of the pages in which it may be typed; without
                any, it may in every page.

        Raises:
            ConfigError: One of them has no value.
        """
        missing = [name for name in pages if not os.environ.get(name)]
        if missing:
            raise ConfigError(
                f"The secret {missing[0]} has no value: set the environment variable "
                f"{missing[0]}, or leave it out of `secrets`."
            )
        return cls({name: os.environ[name] for name in pages}, pages)

    def value(self, name: str, url: str) -> str:
        """Return the value of a secret, to be typed in a page.

        Raises:
            ToolError: There is none of that name, or it may not be typed there.
        """
        value = self._values.get(name)
        if value is None:
            known = ", ".join(sorted(self._values)) or "none"
            raise ToolError(
                f"The server has no secret {name!r}; it has: {known}.", codes.UNKNOWN_SECRET
            )
        pages = self._pages.get(name)
        if pages and not serves(url, pages, ()):
            here = shown_host(host_of(url)) or shorten(url, 100) or "an empty page"
            raise ToolError(
                f"The secret {name} may be typed only on {', '.join(pages)}, and this field is on "
                f"{here}. Only the user can change that: the setting `secrets`.",
                codes.SECRET_NOT_ALLOWED,
                category="permission",
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
