"""The secrets that have been found, and whether each is secret everywhere."""

import json
import re
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final, cast

from opentabs_py.core.recording.scrub_rules import ScrubRules
from opentabs_py.core.recording.secrets.forms import Kind, is_distinct, name_parts
from opentabs_py.core.recording.secrets.names import Holds, holds

SHORTEST: Final = 4  # characters of a secret that is known by the name of what holds it
_NAME_LENGTHS: Final = range(2, 81)  # characters of the user's name
_REMEMBERED: Final = 4096  # names; those of a site's members recur
_JSON_BEGINS: Final = ("{", "[", '"')
# A URL without a password, or a time: in a secret's JSON, these are not secret.
_HARMLESS: Final = re.compile(r"https?://[^@]*|\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?")
_NO_NAMES: Final = frozenset(
    """
    account admin anonymous anyone demo example general guest home login me main name none null
    owner public root self session system team test true false undefined unknown user you
    """.split()  # noqa: SIM905
)
_NO_SECRETS: Final = frozenset(
    """
    basic bearer cookie disabled enabled false full include none null omit password required
    same-origin true undefined
    """.split()  # noqa: SIM905
)


@dataclass(slots=True)
class FoundSecret:
    """A string that a recording must not contain.

    Attributes:
        text: The text.
        kind: What it is.
        where: The name of what held it first.
        holders: The names of all that held it, if it is secret only there: elsewhere, the same
            text may be an ordinary word.
    """

    text: str
    kind: Kind
    where: str
    holders: set[str] = field(default_factory=set[str])

    @property
    def is_distinct(self) -> bool:
        """Whether it is secret wherever it appears."""
        return not self.holders


class FoundSecrets:
    """Secrets, each once; what is too short or too ordinary to be one is left out.

    Args:
        rules: What users add.
        replacements: What is in the place of secrets already.

    Attributes:
        noted: How often a secret was noted, also one that was known.
    """

    def __init__(self, rules: ScrubRules, replacements: AbstractSet[str]) -> None:
        self._public = {*_NO_SECRETS, *rules.keep, *replacements}
        self._holds = lru_cache(maxsize=_REMEMBERED)(partial(holds, rules))
        self._found: dict[str, FoundSecret] = {}
        self.noted = 0
        for text in rules.texts:
            self.add(text, "text", "texts", always=True)

    def __contains__(self, text: str) -> bool:
        return text in self._found

    @property
    def all(self) -> Collection[FoundSecret]:
        """The secrets so far."""
        return self._found.values()

    def holds(self, name: str) -> Holds:
        """Return what a header, member or field holds, by its name."""
        return self._holds(name)

    def add(self, text: str, kind: Kind, where: str, *, always: bool = False) -> None:
        """Note a secret.

        Args:
            text: The secret.
            kind: What it is.
            where: The name of what holds it.
            always: It is secret wherever it appears, whatever it looks like.
        """
        text = text.strip()
        if not always and text[:1] in _JSON_BEGINS and self._add_json(text, kind, where):
            return
        shortest = _NAME_LENGTHS.start if kind == "name" else SHORTEST
        is_short = len(text) < shortest and not always
        if not text or is_short or not self._public.isdisjoint((text, text.lower())):
            return
        self.noted += 1
        distinct = always or is_distinct(text)
        known = self._found.get(text)
        if known is None:
            known = self._found[text] = FoundSecret(text, kind, where)
            if not distinct:
                known.holders.add(where)
        elif distinct:
            known.holders.clear()
        elif not known.is_distinct:
            known.holders.add(where)

    def add_name(self, name: str, where: str) -> None:
        """Note the user's name, and the parts of it; see `add`."""
        if len(name) in _NAME_LENGTHS and name.lower() not in _NO_NAMES:
            self.add(name, "name", where, always=len(name) > _NAME_LENGTHS.start)
            for part in name_parts(name):
                if part.lower() not in _NO_NAMES:
                    self.add(part, "name", where, always=True)

    def _add_json(self, text: str, kind: Kind, where: str) -> bool:
        """Note each string in JSON as a secret, and return whether it is JSON.

        Not the whole: with that replaced, a body that contains the same value would not be JSON.
        """
        try:
            self._add_strings(json.loads(text), kind, where)
        except (ValueError, RecursionError):
            return False
        return True

    def _add_strings(self, value: Any, kind: Kind, where: str) -> None:
        if isinstance(value, str):
            if _HARMLESS.fullmatch(value) is None:
                self.add(value, kind, where)
        elif isinstance(value, dict):
            for name, each in cast("dict[str, Any]", value).items():
                if self._holds(name) != "kept":
                    self._add_strings(each, kind, name)
        elif isinstance(value, list):
            for each in cast("Sequence[Any]", value):
                self._add_strings(each, kind, where)
