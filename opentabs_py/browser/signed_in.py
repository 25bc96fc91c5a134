"""Saved sign-ins: the cookies and storage of a signed-in browser, encrypted.

The key is in the system's keyring; where there is none, in a file that only its owner can read.
"""

import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from opentabs_py.config.files import write_whole
from opentabs_py.config.names import check_name, is_name
from opentabs_py.config.paths import data_dir
from opentabs_py.directories import create_private
from opentabs_py.errors import ConfigError

logger = logging.getLogger(__name__)

SERVICE: Final = "opentabs"
KEY_NAME: Final = "sign-ins"

State = dict[str, Any]
"""Playwright's storage state: `{cookies, origins}`."""


def save_sign_in(name: str, state: State, *, warn: Callable[[str], None] = logger.warning) -> Path:
    """Save a sign-in, encrypted, and return its file.

    Args:
        name: What it is called.
        state: What to save.
        warn: Called if the key can only be kept in a file.

    Raises:
        ConfigError: The name is not valid.
    """
    from cryptography.fernet import Fernet  # noqa: PLC0415 (rarely needed)

    file = _file(check_name(name))
    create_private(file.parent)
    keys, problem = _kept_keys()
    key = keys[0] if keys else _new_key(warn, problem)
    token = Fernet(key).encrypt(json.dumps(state).encode())
    write_whole(file, token, mode=0o600)
    return file


def read_sign_in(name: str) -> State:
    """Return a saved sign-in.

    Raises:
        ConfigError: There is none with this name, it cannot be decrypted, or it has expired.
    """
    from cryptography.fernet import Fernet, InvalidToken, MultiFernet  # noqa: PLC0415

    again = f"Sign in again: opentabs login URL --save {name}"
    try:
        token = _file(check_name(name)).read_bytes()
    except FileNotFoundError:
        saved = ", ".join(sign_ins()) or "none"
        raise ConfigError(f"There is no sign-in named {name!r}. Saved: {saved}. {again}") from None
    keys, problem = _kept_keys()
    try:
        decrypted = MultiFernet([Fernet(each) for each in keys]).decrypt(token)
        state: State = json.loads(decrypted)
    except (InvalidToken, ValueError):
        if problem:
            why = f"the system's keyring cannot be read ({problem}). Unlock it, or sign in again"
        else:
            why = "it was saved with another key. Sign in again"
        raise ConfigError(
            f"Cannot decrypt the sign-in {name!r}: {why}: opentabs login URL --save {name}"
        ) from None
    if _has_expired(state):
        raise ConfigError(f"The sign-in {name!r} has expired, with all its cookies. {again}")
    return state


def is_empty(state: State) -> bool:
    """Return whether there is nothing in it that could sign anyone in."""
    return not (state["cookies"] or state["origins"])


def sign_ins() -> list[str]:
    """Return the names of the saved sign-ins."""
    return sorted(file.stem for file in _file("x").parent.glob("*.sealed"))


def remove_sign_in(name: str) -> bool:
    """Remove a saved sign-in; return whether there was one."""
    file = _file(check_name(name))
    existed = file.exists()
    file.unlink(missing_ok=True)
    return existed


def profile_dir(name: str) -> Path:
    """Return the directory of a named profile.

    Raises:
        ConfigError: The name is not valid.
    """
    return data_dir() / "profiles" / check_name(name)


def profiles() -> list[str]:
    """Return the names of the profiles."""
    parent = data_dir() / "profiles"
    found = [each.name for each in parent.iterdir()] if parent.is_dir() else []
    return sorted(filter(is_name, found))  # a copy may be beside them


def _has_expired(state: State) -> bool:
    """Return whether it had only cookies, and a browser would drop them all."""
    if is_empty(state) or state["origins"]:
        return False
    now = time.time()
    # A cookie that expires with its session has -1.
    return all(0 <= cookie.get("expires", -1) <= now for cookie in state["cookies"])


def _file(name: str) -> Path:
    return data_dir() / "sign-ins" / f"{name}.sealed"


def _kept_keys() -> tuple[list[str], str]:
    """Return the keys, the one to encrypt with first, and why a keyring cannot be read."""
    import keyring  # noqa: PLC0415
    from keyring.errors import KeyringError, NoKeyringError  # noqa: PLC0415

    keys: list[str] = []
    problem = ""
    try:
        kept = keyring.get_password(SERVICE, KEY_NAME)
        if kept is not None:
            keys.append(kept)
    except NoKeyringError as error:
        logger.debug("No keyring: %s", error)
    except KeyringError as error:  # for example, it is locked
        problem = str(error)
    # A keyring that was locked once has left a key here.
    with suppress(FileNotFoundError):
        keys.append(_key_file().read_text())
    return keys, problem


def _new_key(warn: Callable[[str], None], problem: str) -> str:
    """Create the key: in the keyring, or in a file if the keyring has a problem.

    A keyring that could not be read may have a key already, which must not be replaced.
    """
    import keyring  # noqa: PLC0415
    from cryptography.fernet import Fernet  # noqa: PLC0415
    from keyring.errors import KeyringError, NoKeyringError  # noqa: PLC0415

    key = Fernet.generate_key().decode()
    why = f"No keyring ({problem})"
    if not problem:
        try:
            keyring.set_password(SERVICE, KEY_NAME, key)
        except NoKeyringError:
            why = "No keyring found"
        except KeyringError as error:
            why = f"No keyring ({error})"
        else:
            return key
    file = _key_file()
    warn(f"{why}: the key for saved sign-ins is in {file}. Keep that file private.")
    create_private(file.parent)
    write_whole(file, key.encode(), mode=0o600)
    return key


def _key_file() -> Path:
    return data_dir() / "sign-ins.key"
