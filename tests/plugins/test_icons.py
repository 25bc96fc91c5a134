"""The icons that a tool may name."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from opentabs_py.config.paths import data_dir
from opentabs_py.plugins.icons import LucideIcons
from opentabs_py.plugins.toolchain import find_toolchain


@pytest.fixture(scope="module")
def icons() -> LucideIcons:
    return LucideIcons(find_toolchain(data_dir=data_dir()).icons)


def test_every_name_returns_an_svg_document(icons: LucideIcons) -> None:
    names = icons.names()

    assert len(names) > 1500
    for name in names:
        svg = icons.svg(name)
        assert svg is not None, name
        assert ET.fromstring(svg).get("viewBox") == "0 0 24 24", name


def test_an_older_name_returns_the_current_icon(icons: LucideIcons) -> None:
    assert icons.svg("activity-square") == icons.svg("square-activity")


def test_no_other_name_is_found(icons: LucideIcons) -> None:
    assert icons.svg("Wrench") is None


def test_a_file_without_aliases_is_read(tmp_path: Path) -> None:
    file = tmp_path / "icons.json"
    file.write_text('{"icons": {"a": {"body": "<path/>"}}}')

    assert LucideIcons(file).names() == ["a"]
