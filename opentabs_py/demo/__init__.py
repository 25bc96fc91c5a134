"""A small chat site and a plugin for it, so that the whole chain can be seen at work."""

from pathlib import Path

from opentabs_py.demo.site import create_demo_site

__all__ = ["create_demo_site", "demo_plugin_dir"]


def demo_plugin_dir() -> Path:
    """Give the directory of the demo plugin, built and ready to load."""
    return Path(__file__).with_name("plugin")
