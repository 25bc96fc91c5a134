"""Which of Playwright's switches to leave out, and whether Chromium gets its sandbox.

Playwright's switches make a browser for tests: quiet, predictable, and less secure in places
where a browser that people sign in with must be secure.
"""

import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opentabs_py.config.settings import Settings

logger = logging.getLogger(__name__)

# With it, a page that calls history.replaceState() in a loop starves every other tab.
_NEVER: Final = ("--disable-ipc-flooding-protection",)
# A kept profile contains people's sign-ins, so its protections stay on, and it behaves like their
# own browser. The remaining switches are needed for the extension or for Playwright's pipe, or
# suppress prompts and telemetry at startup.
_NOT_WITH_A_KEPT_PROFILE: Final = (
    "--password-store=basic",  # passwords and cookies encrypted with a well-known key
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
# Chromium uses the last such list. Playwright's also turns off HTTPS upgrades and the partitioning
# of third-party storage; these two prevent the profile's destruction while Playwright closes it.
_FEATURES_OFF_WITH_A_KEPT_PROFILE: Final = (
    "--disable-features=AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose"
)

# Chromium uses the last list of features to turn on, so Playwright's own are repeated.
_FEATURES: Final = "--enable-features="
_FEATURES_OF_PLAYWRIGHT: Final = ("CDPScreenshotNewSurface", "SkipListAccountsWithoutGaiaCookies")

_RISK: Final = "a page that breaks out of its renderer can do everything that you can."


def left_out(*, keeps_profile: bool) -> Sequence[str]:
    """Return the Playwright switches to leave out."""
    return (*_NEVER, *_NOT_WITH_A_KEPT_PROFILE) if keeps_profile else _NEVER


def added(*, keeps_profile: bool) -> Sequence[str]:
    """Return the switches that replace some of Playwright's."""
    return (_FEATURES_OFF_WITH_A_KEPT_PROFILE,) if keeps_profile else ()


def turned_on(features: Sequence[str], args: Sequence[str]) -> Sequence[str]:
    """Return switches that also turn on features of Chromium, as Playwright's do theirs."""
    if not features:
        return args
    given = [each.removeprefix(_FEATURES) for each in args if each.startswith(_FEATURES)]
    wanted = [name for each in given for name in each.split(",")]
    names = dict.fromkeys((*_FEATURES_OF_PLAYWRIGHT, *wanted, *features))
    others = [each for each in args if not each.startswith(_FEATURES)]
    return (*others, _FEATURES + ",".join(names))


def configured_sandbox(settings: "Settings") -> bool:
    """Return whether Chromium gets its sandbox; as root it does not start with one.

    Logs a warning if running without one puts more than a test at risk.
    """
    if settings.no_sandbox:
        logger.warning("Chromium runs without its sandbox (no_sandbox): %s", _RISK)
        return False
    if not is_root():
        return True
    if settings.profile is not None:
        logger.warning(
            "Chromium runs without its sandbox, because root starts it: %s Run this as another "
            "user to get the sandbox.",
            _RISK,
        )
    return False


def is_root() -> bool:
    """Return whether this process runs as root."""
    return sys.platform != "win32" and os.geteuid() == 0
