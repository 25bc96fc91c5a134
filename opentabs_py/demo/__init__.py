"""A small chat site and a plugin for it, to show the whole chain at work."""

from pathlib import Path

from opentabs_py.demo.site import create_demo_site

__all__ = ["create_demo_site", "demo_plugin_dir"]


def demo_plugin_dir() -> Path:
    """Return the directory of the demo plugin, which is built and ready to load."""
    return Path(__file__).with_name("plugin")
