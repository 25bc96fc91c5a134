"""Locate the JavaScript: in an installed package, or in the checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def extension_dir() -> Path:
    """Return the directory of the unpacked extension, as Chrome loads it."""
    return _beside_package("extension")


def adapter_js_dir() -> Path:
    """Return the directory of the page runtime, the plugin SDK and the builder."""
    return _beside_package("adapter_js")


def runtime_file() -> Path:
    """Return the script that registers adapters in a page and runs their tools."""
    return adapter_js_dir() / "runtime.js"


def console_page_dirs() -> dict[str, Path]:
    """Return the directories of the console's page, by where they are in it."""
    return {"": _PACKAGE / "console" / "page", "viewer": _PACKAGE / "tracing" / "viewer"}


def in_checkout() -> bool:
    """Return whether this package runs from its own repository."""
    # Only a wheel has `_assets`. Files next to an installed package belong to other packages.
    return not (_PACKAGE / "_assets").is_dir()


def _beside_package(name: str) -> Path:
    return (_PACKAGE.parent if in_checkout() else _PACKAGE / "_assets") / name
