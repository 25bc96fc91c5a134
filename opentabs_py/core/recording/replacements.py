"""What is written in the place of secrets."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from opentabs_py.core.encodings import base64url
from opentabs_py.core.recording.exchange import Scrubbed
from opentabs_py.core.recording.secrets.forms import Kind, name_parts
from opentabs_py.core.recording.secrets.found import FoundSecret

_FIRST_NAMES: Final = ("Robin", "Sasha", "Noor", "Kim", "Alex", "Jamie", "Charlie", "Morgan")
_PHONE: Final = "5550100"
_STEMS: Final[Mapping[Kind, str]] = {
    "authorization": "authorization",
    "cookie": "cookie",
    "CSRF token": "csrf-token",
    "text": "text",
    "token": "token",
}
# A token's header and claims; it does not expire, because a recording is replayed for years.
_JWT_HEADER: Final = {"alg": "none", "typ": "JWT"}
_JWT_EXPIRES: Final = 4_102_444_800  # 2100-01-01


def choose_replacements(
    secrets: Iterable[FoundSecret], earlier: Sequence[Scrubbed]
) -> Mapping[str, str]:
    """Return the replacement of each secret, by its text.

    Args:
        secrets: The secrets.
        earlier: What was replaced before, whose replacements are not used again.
    """
    choice = _Choice(earlier)
    # The parts of a name before the whole, which consists of them.
    for each in sorted(secrets, key=lambda each: len(each.text)):
        choice.replacements[each.text] = choice.choose(each)
    return choice.replacements


class _Choice:
    def __init__(self, earlier: Sequence[Scrubbed]) -> None:
        self.replacements: dict[str, str] = {}
        self._numbers: Counter[str] = Counter(each.kind for each in earlier)
        self._numbers["digits"] = len(earlier)

    def choose(self, secret: FoundSecret) -> str:
        text, kind = secret.text, secret.kind
        if kind == "name":
            return self._name(text)
        if kind == "phone number" or text.lstrip("-").isdigit():
            return self._digits(text)
        number = self._numbers[kind] = self._numbers[kind] + 1
        if kind == "e-mail address":
            return f"person{number}@example.com"
        if kind == "JSON Web Token":
            claims = {"sub": f"jwt-{number}", "exp": _JWT_EXPIRES}
            return ".".join(base64url(json.dumps(each)) for each in (_JWT_HEADER, claims)) + "."
        return f"{_STEMS[kind]}-{number}"

    def _name(self, text: str) -> str:
        parts = name_parts(text)
        if len(parts) > 1:
            name = text
            for part in parts:
                if (known := self.replacements.get(part)) is not None:
                    name = name.replace(part, known)
            return name
        number = self._numbers["name"]
        self._numbers["name"] += 1
        again, index = divmod(number, len(_FIRST_NAMES))
        new = _FIRST_NAMES[index] + (str(again + 1) if again else "")
        return new.lower() if text.islower() else new

    def _digits(self, text: str) -> str:
        """Replace digits by as many others, which are the same for the same number."""
        digits = "".join(c for c in text if c.isdigit())
        number = self._numbers[f"digits {digits}"]
        if not number:
            self._numbers["digits"] += 1
            number = self._numbers[f"digits {digits}"] = self._numbers["digits"]
        new = f"{_PHONE}{number:0{max(1, len(digits) - len(_PHONE))}}"[-len(digits) :]
        if len(digits) < len(_PHONE):
            new = f"{number:0{len(digits)}}"[-len(digits) :]
        if new[0] == "0":  # which would be an octal number in JSON
            new = "5" + new[1:]
        following = iter(new)
        return "".join(next(following) if c.isdigit() else c for c in text)
