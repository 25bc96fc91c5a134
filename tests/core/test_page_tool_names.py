"""The names of the tools that pages register: unique for each site."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.page_tool_names import LONGEST, Naming, name_tools, pattern_of, site_of
from opentabs_py.core.sites import match_patterns


def a_naming(host: str = "shop.example", tool: str = "add", identity: str = "") -> Naming:
    return Naming(host, tool, identity or f"{host} {tool}")


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://shop.example/cart?x#y", "https://shop.example"),
        ("https://shop.example:443/", "https://shop.example"),
        ("http://shop.example.:8000/", "http://shop.example:8000"),
        ("http://[::1]:3000/", "http://[::1]:3000"),
        ("https://user@SHOP.example/", "https://shop.example"),
    ],
)
def test_a_site_is_an_origin_without_its_default_port(url: str, origin: str) -> None:
    site = site_of(url)
    assert site is not None
    assert site.origin == origin


@pytest.mark.parametrize("url", ["file:///etc/hosts", "about:blank", "http://[::1", "http:///x"])
def test_a_page_without_a_web_origin_has_no_site(url: str) -> None:
    assert site_of(url) is None


@pytest.mark.parametrize("url", ["http://[::1]:3000/x", "https://shop.example/x"])
def test_the_pattern_of_a_site_matches_its_pages(url: str) -> None:
    site = site_of(url)
    assert site is not None
    assert match_patterns.parse(pattern_of(site)).matches(url)


def test_no_two_origins_have_the_same_owner() -> None:
    urls = [
        "https://a.b.example/",
        "https://a-b.example/",
        "http://a.b.example/",
        "https://a.b.example:8443/",
        "https://www.a.b.example/",
    ]
    owners = {site.owner for url in urls if (site := site_of(url)) is not None}
    assert len(owners) == len(urls)
    assert "page--a-b-example" in owners  # as for https://a.b.example


@pytest.mark.parametrize(
    ("host", "tool", "name"),
    [
        ("shop.example", "add", "page_shop_example_add"),
        ("www.shop.example", "add-to.cart", "page_shop_example_add_to_cart"),
        ("127.0.0.1", "addTodo", "page_127_0_0_1_addTodo"),
        ("::1", "über", "page_1_ber"),
        ("shop.example", "加", "page_shop_example_tool"),
    ],
)
def test_a_name_says_site_and_tool(host: str, tool: str, name: str) -> None:
    assert name_tools([a_naming(host, tool)], ()) == [name]


def test_of_tools_with_the_same_name_none_gets_it() -> None:
    first, second = a_naming(identity="1"), a_naming(identity="2")
    names = name_tools([first, second], ())
    assert names == [first.suffixed(), second.suffixed()]
    assert first.plain not in names


def test_a_suffix_depends_on_nothing_but_the_tool() -> None:
    first, second = a_naming(identity="1"), a_naming(identity="2")
    assert name_tools([second, first], ())[1] == name_tools([first, second], ())[0]


def test_the_name_of_another_tool_is_never_taken() -> None:
    tool = a_naming()
    taken = {tool.plain, tool.suffixed()}
    [name] = name_tools([tool], taken)
    assert name == tool.suffixed(8)


def test_no_page_takes_the_names_that_another_tool_would_have() -> None:
    tool, namesake = a_naming(tool="z_a", identity="1"), a_naming(tool="z__a", identity="2")
    digits = tool.suffixed(32).rpartition("_")[2]
    planted = [
        a_naming(tool=f"z-a-{digits[:length]}", identity=f"planted {length}")
        for length in (4, 8, 16, 32)
    ]
    assert {tool.suffixed(length) for length in (4, 8, 16)} == {each.plain for each in planted[:3]}
    names = name_tools([*planted, tool, namesake], ())
    assert names[4:] == [tool.suffixed(), namesake.suffixed()]
    assert names[0] == planted[0].suffixed()


def test_a_tool_all_of_whose_names_are_taken_has_none() -> None:
    tool = a_naming()
    taken = {tool.plain, *(tool.suffixed(length) for length in (4, 8, 16, 32))}
    assert name_tools([tool], taken) == [None]
    assert name_tools([tool, a_naming(tool="other")], taken)[1] is not None


def test_a_long_name_is_cut_and_gets_a_suffix() -> None:
    tool = a_naming(tool="x" * 128)
    assert name_tools([tool], ()) == [tool.suffixed()]
    assert len(tool.suffixed()) == LONGEST


@given(
    st.lists(st.tuples(st.sampled_from(["a.b", "a-b"]), st.text(max_size=80)), unique=True),
    st.sets(st.sampled_from(["page_a_b_tool", "page_a_b_x"])),
)
def test_names_are_unique_valid_and_free(tools: list[tuple[str, str]], taken: set[str]) -> None:
    namings = [Naming(host, tool, repr((host, tool))) for host, tool in tools]
    names = name_tools(namings, taken)
    assert len({*names}) == len(names)
    assert not {*names} & taken
    for name in names:
        assert name is not None
        assert len(name) <= LONGEST
        assert name.isascii()
        assert name.replace("_", "").isalnum()
