"""What the name of a header, member or field says of what it holds."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal

from opentabs_py.core.excerpts import is_secret_name, plain_name
from opentabs_py.core.recording.scrub_rules import ScrubRules
from opentabs_py.core.recording.secrets.forms import Kind

Holds = Literal["kept", "secret", "phone number", "person", "anything"]
"""What has a name, by the name alone; "kept" if the user's rules say so."""

_PHONE: Final = re.compile(r"phone|mobile|msisdn|^tel$|^cell$|^fax$")
_CSRF: Final = re.compile(r"csrf|xsrf|authenticitytoken|requestverificationtoken|^nonce$")
_POSITION: Final = re.compile(r"^(?:next|prev|previous)?(?:page|continuation|sync|cursor)token$")
_PERSON: Final = re.compile(
    r"^(?:full|display|real|first|last|given|family|middle|nick|screen|user|login|preferred)?name$"
    r"|^(?:login|handle|nickname|preferredusername)$"
)
_SELF: Final = re.compile(
    r"^(?:me|myself|self|viewer|currentuser|loggedinuser|authuser|activeuser|signedinuser|whoami"
    r"|profile|myprofile|account|myaccount|userinfo|identity|session)$"
)
_CONTENTS: Final = frozenset(
    {"value", "raw", "plain", "plaintext", "hash", "current", "old", "new"}
)


def holds(rules: ScrubRules, name: str) -> Holds:
    """Return what a header, member or field holds."""
    names = _names(name)
    if _match(names, rules.keep):
        return "kept"
    if _match(names, rules.members) or any(map(_is_secret, names)):
        return "secret"
    if any(_PHONE.search(plain_name(each)) for each in names):
        return "phone number"
    if any(_PERSON.search(plain_name(each)) for each in names):
        return "person"
    return "anything"


def kind_of(name: str) -> Kind:
    """Return what a secret is, by the name of what holds it."""
    if _CSRF.search(plain_name(name)):
        return "CSRF token"
    return "authorization" if "auth" in name.lower() else "token"


def is_content(name: str) -> bool:
    """Return whether a member of a secret's object is the secret: `"token": {"value": "…"}`."""
    return plain_name(name) in _CONTENTS


def is_self(name: str, *, within_own: bool = False) -> bool:
    """Return whether a member is about the user who is signed in.

    Args:
        name: The member's name.
        within_own: Whether what contains it is about the user.
    """
    plain = plain_name(name)
    return _SELF.search(plain) is not None or (within_own and plain in ("data", "user"))


def is_about_self(path: str) -> bool:
    """Return whether a path is that of the user who is signed in, such as `/api/me`."""
    segments = [each for each in path.split("/") if each]
    return any(map(is_self, segments[-2:])) or segments[-1:] == ["user"]


def _names(name: str) -> Sequence[str]:
    """Return a name, and what it ends in, as `pin` in a form's `user[pin]` or `pin[]`."""
    words = [each for each in re.split(r"[\[\]]+", name) if each and not each.isdigit()]
    return [name, *words[-1:]]


def _match(names: Sequence[str], patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for name in names for pattern in patterns)


def _is_secret(name: str) -> bool:
    plain = plain_name(name)
    is_secret = is_secret_name(name.removeprefix("x-")) or _CSRF.search(plain) is not None
    return is_secret and _POSITION.search(plain) is None
