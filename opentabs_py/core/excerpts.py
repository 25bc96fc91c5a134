"""Excerpts of arguments and results: the beginning, without what looks like a secret.

A name says what is secret (`password`, `api_key`, `Authorization`), wherever in the value it is; so
do the texts that are known to be secret, and a few forms that secrets have inside texts. What this
does not recognize is kept: this prevents accidents, but guarantees nothing.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from pydantic_core import to_json, to_jsonable_python

from opentabs_py.core.encodings import encodings_of
from opentabs_py.core.text import shorten

LONGEST: Final = 16_384  # characters
MASK: Final = "•••"
SHORTEST_SECRET: Final = 6  # characters; a shorter one would be found everywhere
LONGEST_NAME: Final = 256  # characters of a name that are read; a page may name a text of 64 MiB
_MORE: Final = "…"
_DEEPEST: Final = 64  # objects and arrays within each other

# In names without their hyphens and underscores, in lower case.
_SECRET_NAME: Final = re.compile(
    r"passw|passphrase|passcode|^pass$|pwd|secret|token|authorization|^auth$|cookie|apikey|accesskey"
    r"|privatekey|signingkey|credential|bearer|csrf|xsrf|sessionid|^otp$|^pin$|^cvv$|^cvc$"
)
_COUNT_NAME: Final = re.compile(r"tokens$|tokencount$")  # numbers that agents and models ask for
_IN_TEXT: Final = re.compile(
    r"(?i)(?P<before>\bbearer\s+)[\w.~+/=-]{8,}"
    r"|(?P<user>://)[^/?#@\s\"]+(?=@)"
    r"|(?P<query>[?&#;]"
    # Atomic: each `passw` of a page's name would be tried up to its end.
    r"(?:(?>[\w.-]*?passw)[\w.-]*+|[\w.-]*(?:token|secret|api_?key|signature|session_?id))=)"
    r"[^&#\s\"]+"
)


class Excerpts:
    """Makes excerpts of values, without their secrets.

    Args:
        secrets: Returns strings that are secret wherever they appear; short ones are ignored.
        longest: The longest excerpt, in characters.
    """

    def __init__(
        self, secrets: Callable[[], Iterable[str]] = tuple, *, longest: int = LONGEST
    ) -> None:
        self._secrets = secrets
        self._longest = longest

    def of_value(self, value: Any) -> str:
        """Return a value as JSON; it takes no longer for a large value than for a small one."""
        copied = self._copy().of(value)
        return shorten(to_json(copied, fallback=repr).decode(), self._longest)

    def of_text(self, text: str) -> str:
        """Return a string, such as an error's message."""
        return shorten(self._copy().of_text(text), self._longest)

    def _copy(self) -> "_Copy":
        known = frozenset(each for each in self._secrets() if len(each) >= SHORTEST_SECRET)
        return _Copy(_forms_of(known), self._longest)


@lru_cache(maxsize=8)  # settings change rarely
def _forms_of(secrets: frozenset[str]) -> Sequence[str]:
    """Return how secrets appear in JSON, URLs and so on, the longest first."""
    forms = {encode(each) for each in secrets for encode in encodings_of(each)}
    return sorted(forms, key=len, reverse=True)  # one may be part of another


def is_secret_name(name: str) -> bool:
    """Return whether what has this name is probably a secret."""
    return _SECRET_NAME.search(plain_name(name[:LONGEST_NAME])) is not None


def plain_name(name: str) -> str:
    """Return a name in lower case, without what separates its words."""
    return re.sub(r"[-_.\s]", "", name).lower()


class _Copy:
    """Copies the beginning of a value, without its secrets."""

    def __init__(self, secrets: Sequence[str], longest: int) -> None:
        self._secrets = secrets
        self._longest_secret = len(secrets[0]) if secrets else 0
        self._left = longest  # characters, about

    def of(self, value: Any, depth: int = 0) -> Any:
        self._left -= 2
        if depth > _DEEPEST:
            return _MORE
        if isinstance(value, str):
            return self.of_text(value)
        if isinstance(value, dict):
            return self._of_object(cast("dict[object, Any]", value), depth + 1)
        if isinstance(value, (list, tuple)):
            return self._of_array(cast("Sequence[Any]", value), depth + 1)
        if value is None or isinstance(value, (bool, int, float)):
            return value
        return self.of(to_jsonable_python(value, fallback=repr), depth + 1)

    def of_text(self, text: str) -> str:
        end = max(self._left, 0) + self._longest_secret
        kept = text[:end]
        for secret in self._secrets:
            kept = kept.replace(secret, MASK)
        kept = _IN_TEXT.sub(_mask_match, kept)
        if len(text) > end:  # at its end there may be the beginning of a secret
            kept = kept[: max(0, len(kept) - self._longest_secret)] + _MORE
        self._left -= len(kept)
        return kept.encode("utf-8", "replace").decode()  # a lone surrogate cannot be written

    def _of_object(self, value: Mapping[object, Any], depth: int) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        named = value.get("name", value.get("key"))  # {"name": "Cookie", "value": ...}
        is_pair = isinstance(named, str) and is_secret_name(named)
        for key, each in value.items():
            if self._left <= 0:
                copied[_MORE] = _MORE
                break
            name = self.of_text(str(key))
            is_secret = is_secret_name(str(key)) or (is_pair and key == "value")
            is_masked = is_secret and _can_be_secret(str(key), each)
            copied[name] = MASK if is_masked else self.of(each, depth)
        return copied

    def _of_array(self, value: Sequence[Any], depth: int) -> list[Any]:
        copied: list[Any] = []
        for each in value:
            if self._left <= 0:
                copied.append(_MORE)
                break
            copied.append(self.of(each, depth))
        return copied


def _can_be_secret(name: str, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return False
    is_number = isinstance(value, (int, float))
    return not (is_number and _COUNT_NAME.search(plain_name(name[:LONGEST_NAME])))


def _mask_match(found: "re.Match[str]") -> str:
    return (found["before"] or found["user"] or found["query"]) + MASK
