"""Tabs are numbered across browsers, and each number leads back to its browser."""

import pytest

from opentabs_py.core.tabs.numbers import browser_of, numbers_of, own_number


@pytest.mark.parametrize("browser", [0, 1, 7])
@pytest.mark.parametrize("tab", [0, 1, 2_147_483_647])
def test_a_number_leads_back_to_its_browser_and_tab(browser: int, tab: int) -> None:
    number = numbers_of(browser)[tab]
    assert (browser_of(number), own_number(number)) == (browser, tab)


def test_the_first_browser_s_tabs_keep_their_numbers() -> None:
    assert numbers_of(0)[1_234] == 1_234


def test_no_two_browsers_share_a_number() -> None:
    assert numbers_of(0).stop == numbers_of(1).start
