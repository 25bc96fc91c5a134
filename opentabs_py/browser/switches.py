"""Which of Playwright's switches a Chromium is launched without, and whether it has its sandbox.

Playwright's switches make a browser for tests: quiet, predictable, and soft in places where a
browser that people sign in to must not be.
"""

import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opentabs_py.config import Settings

logger = logging.getLogger(__name__)

# With it, one page that calls history.replaceState() in a loop starves every other tab.
_NEVER: Final = ("--disable-ipc-flooding-protection",)
# A profile that is kept holds what people sign in to: what guards it stays on, and it behaves as
# their own browser does. What is left is there for the extension, for Playwright's pipe, or
# against questions and telemetry at the start.
_NOT_WITH_A_KEPT_PROFILE: Final = (
    "--password-store=basic",  # passwords and cookies encrypted with a key that all know
    "--use-mock-keychain",
    "--disable-component-update",  # revoked certificates, among others
    "--disable-background-networking",
    "--disable-field-trial-config",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-hang-monitor",
    "--disable-back-forward-cache",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--allow-pre-commit-input",
    "--force-color-profile=srgb",
    "--enable-unsafe-swiftshader",
    "--unsafely-disable-devtools-self-xss-warnings",
)
# Chromium takes the last list. Playwright's also turns off HTTPS upgrades and the partitioning of
# third-party storage; these two are what keeps a profile from going while Playwright closes it.
_FEATURES_OFF_WITH_A_KEPT_PROFILE: Final = (
    "--disable-features=AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose"
)

_RISK: Final = "a page that breaks out of its renderer can do all that you can."


def left_out(*, keeps_profile: bool) -> Sequence[str]:
    """Return the switches of Playwright's that are not for us."""
    return (*_NEVER, *_NOT_WITH_A_KEPT_PROFILE) if keeps_profile else _NEVER


def added(*, keeps_profile: bool) -> Sequence[str]:
    """Return the switches that take the place of some of Playwright's."""
    return (_FEATURES_OFF_WITH_A_KEPT_PROFILE,) if keeps_profile else ()


def configured_sandbox(settings: "Settings") -> bool:
    """Return whether Chromium gets its sandbox; as root it does not start with one.

    Logs a warning where that puts at risk more than a test.
    """
    if settings.no_sandbox:
        logger.warning("Chromium runs without its sandbox (no_sandbox): %s", _RISK)
        return False
    if not is_root():
        return True
    if settings.profile is not None:
        logger.warning(
            "Chromium runs without its sandbox, because root starts it: %s Run this as another "
            "user to have the sandbox.",
            _RISK,
        )
    return False


def is_root() -> bool:
    """Return whether this process is root's."""
    return sys.platform != "win32" and os.geteuid() == 0
