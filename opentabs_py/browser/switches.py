"""The Playwright switches to leave out, and Chromium's sandbox.

Playwright's switches make a browser for tests: quiet, predictable, and less secure in places
where a browser that users sign in with must be secure.
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
# A kept profile contains the user's sign-ins, so its protections stay on, and it behaves like their
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
# Chromium shows its address bar's suggestions as two web pages, and loads both for each browser and
# each context: more than half of a start's CPU time, for what only users who type there see.
# Without them, it draws the suggestions itself.
_ADDRESS_BAR: Final = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup")
_ON: Final = "--enable-features="
_OFF: Final = "--disable-features="
# Chromium uses the last list of each kind, so Playwright's own are repeated.
_ON_BY_PLAYWRIGHT: Final = ("CDPScreenshotNewSurface", "SkipListAccountsWithoutGaiaCookies")
_OFF_BY_PLAYWRIGHT: Final = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "TcpPortRandomizationWin",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
    "msForceBrowserSignIn",
    "msEdgeUpdateLaunchServicesPreferredVersion",
)
# Most of Playwright's would also make a kept profile less secure: without HTTPS upgrades, or the
# partitioning of third-party storage. These prevent its destruction while Playwright closes it.
_OFF_WITH_A_KEPT_PROFILE: Final = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
)

_RISK: Final = "a page that breaks out of its renderer can do everything that you can."


def left_out(*, keeps_profile: bool) -> Sequence[str]:
    """Return the Playwright switches to leave out."""
    return (*_NEVER, *_NOT_WITH_A_KEPT_PROFILE) if keeps_profile else _NEVER


def added(
    *,
    keeps_profile: bool,
    headed: bool,
    features: Sequence[str] = (),
    args: Sequence[str] = (),
) -> Sequence[str]:
    """Return the switches to add to Playwright's: the caller's, and lists of features.

    Args:
        keeps_profile: Whether the profile contains the user's sign-ins.
        headed: Whether the browser has a visible window.
        features: Features of Chromium to turn on.
        args: The caller's switches; what its lists of features say is kept.
    """
    off = _OFF_WITH_A_KEPT_PROFILE if keeps_profile else _OFF_BY_PLAYWRIGHT
    if not (keeps_profile and headed):
        off = (*off, *_ADDRESS_BAR)
    asked_on, asked_off = _listed(_ON, args), _listed(_OFF, args)
    on = dict.fromkeys((*_ON_BY_PLAYWRIGHT, *asked_on, *features))
    return (
        *(each for each in args if not each.startswith((_ON, _OFF))),
        _ON + ",".join(on),
        _OFF + ",".join(dict.fromkeys((*(each for each in off if each not in on), *asked_off))),
    )


def _listed(switch: str, args: Sequence[str]) -> list[str]:
    lists = [each.removeprefix(switch) for each in args if each.startswith(switch)]
    return [name for each in lists for name in each.split(",") if name]


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
