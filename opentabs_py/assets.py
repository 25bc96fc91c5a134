"""Where the files that run in the browser lie: inside an installed package, or in the checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def extension_dir() -> Path:
    """Give the directory of the unpacked extension, as Chrome loads it."""
    return _installed_or_in_checkout("extension", "extension")


def runtime_file() -> Path:
    """Give the script that holds adapters in a page and runs their tools."""
    return _installed_or_in_checkout("runtime.js", "adapter_js/runtime.js")


def _installed_or_in_checkout(installed: str, in_checkout: str) -> Path:
    # Only a wheel has `_assets`. What lies beside an installed package is someone else's.
    assets = _PACKAGE / "_assets"
    return assets / installed if assets.is_dir() else _PACKAGE.parent / in_checkout
