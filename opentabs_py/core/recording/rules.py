"""The user's rules for secrets in recordings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """What users add, in `[tool.opentabs.scrub]`.

    Attributes:
        members: Names of headers, JSON members, fields and query members; `*` is any text.
        texts: Strings, such as names of persons.
        patterns: Regular expressions.
        keep: Names as in `members`, and strings, that are not secret.
    """

    members: Sequence[str] = ()
    texts: Sequence[str] = ()
    patterns: Sequence[re.Pattern[str]] = ()
    keep: Sequence[str] = ()
