"""The colours that the pages share."""

import re
from importlib.resources import files
from typing import Final

import pytest

_PAGES: Final = files("opentabs_py")
_CSS: Final = "".join(
    _PAGES.joinpath(*path).read_text(encoding="utf-8")
    for path in (("tracing", "viewer", "theme.css"), ("console", "page", "console.css"))
)
_COLOURS: Final = {
    name: pair for name, *pair in re.findall(r"--(\w+): light-dark\((#\w+), (#\w+)\)", _CSS)
}
_TINT: Final = 0.12  # as much of its colour is behind the text of a badge
_READABLE: Final = 4.5  # WCAG 2.2, success criterion 1.4.3

_Colour = tuple[float, float, float]


def _colour(text: str) -> _Colour:
    red, green, blue = bytes.fromhex(text.removeprefix("#"))
    return red / 255, green / 255, blue / 255


def _mix(front: _Colour, back: _Colour) -> _Colour:
    red, green, blue = (_TINT * a + (1 - _TINT) * b for a, b in zip(front, back, strict=True))
    return red, green, blue


def _luminance(colour: _Colour) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("behind", ["panel", "bg"])
@pytest.mark.parametrize(
    "name", ["succeeded", "failed", "timed_out", "lost", "refused", "cancelled", "running"]
)
def test_text_on_a_tint_of_its_own_colour_has_enough_contrast(
    name: str, behind: str, scheme: int
) -> None:
    colour, back = (_colour(_COLOURS[each][scheme]) for each in (name, behind))
    dark, light = sorted([_luminance(colour), _luminance(_mix(colour, back))])
    assert (light + 0.05) / (dark + 0.05) >= _READABLE
