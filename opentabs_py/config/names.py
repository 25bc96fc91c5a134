"""Names that users give: to servers, profiles and sign-ins. Each is also a file's name."""

import re
from typing import Final

from opentabs_py.core.text import HYPHENATED
from opentabs_py.errors import ConfigError

LONGEST: Final = 40
_NAME: Final = re.compile(HYPHENATED)


def is_name(text: str) -> bool:
    """Return whether a string is a valid name."""
    return _NAME.fullmatch(text) is not None and len(text) <= LONGEST


def check_name(name: str, what: str = "name") -> str:
    """Return a name, if it is valid.

    Args:
        name: The name.
        what: What it is called in the error, such as `server name`.

    Raises:
        ConfigError: It is not.
    """
    if not is_name(name):
        raise ConfigError(
            f"{name!r} is not a valid {what}. Use up to {LONGEST} lower-case letters, digits and "
            "hyphens, such as `work`."
        )
    return name
