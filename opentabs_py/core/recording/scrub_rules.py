"""The user's rules for secrets in recordings."""

import re
from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict


@dataclass(frozen=True, slots=True)
class ScrubRules:
    """What to scrub from recordings besides what is recognized; `[tool.opentabs.scrub]`.

    Attributes:
        members: Names of headers, JSON members, fields and query members that hold secrets; `*`
            stands for any characters.
        texts: Secret strings, such as the user's name.
        patterns: Regular expressions for secret strings.
        keep: Names and strings that are not secret.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    members: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    keep: tuple[str, ...] = ()
