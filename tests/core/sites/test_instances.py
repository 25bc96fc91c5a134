"""Which instance of a plugin's site a page belongs to."""

import json

import pytest

from opentabs_py.core.plugin_names import qualified_names
from opentabs_py.core.plugins.manifest import PluginManifest, configure
from opentabs_py.core.plugins.manifest_files import parse_plugin
from opentabs_py.core.sites.instances import Instance, Instances, address, find_instances
from opentabs_py.errors import PluginError
from tests.fakes import Json

SHARED = Instances(
    {
        "main": ("https://one.example/",),
        "team": ("https://one.example/team/",),
        "other": ("https://one.example:8443/login?next=x", "https://api.example"),
    }
)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://one.example/", "main"),
        ("https://one.example", "main"),
        ("https://ONE.example.:443/x?y#z", "main"),
        ("https://one.example/team", "team"),
        ("https://one.example/team/x", "team"),
        ("https://one.example/teams", "main"),
        ("https://one.example:8443/anything", "other"),
        ("https://api.example/v1", "other"),
        ("http://one.example/", None),
        ("https://two.example/", None),
        ("https://sub.one.example/", None),
        ("about:blank", None),
        ("https://[", None),
        ("https://one.example:99999/", None),
        ("", None),
    ],
)
def test_a_page_is_of_the_instance_at_its_origin_with_the_longest_path_before_its_own(
    url: str, name: str | None
) -> None:
    assert SHARED.instance_at(url) == name
    assert Instance("team", SHARED).has(url) == (name == "team")


def test_the_longest_path_decides_and_not_the_name() -> None:
    instances = Instances({"z": ("https://x.example/",), "a": ("https://x.example/team/",)})
    assert instances.instance_at("https://x.example/team/1") == "a"


@pytest.mark.parametrize("url", ["about:blank", "https://", "https:///path", "file://host/x"])
def test_what_has_no_web_host_has_no_address(url: str) -> None:
    assert address(url) is None


def test_where_only_paths_differ_a_page_beside_them_is_of_none() -> None:
    instances = Instances({"a": ("https://x.example/a",), "b": ("https://x.example/b",)})
    assert instances.instance_at("https://x.example/c") is None


def test_a_page_of_an_international_host_is_known_by_the_name_that_the_browser_uses() -> None:
    instances = Instances({"a": ("https://bücher.example",), "b": ("https://b.example",)})
    assert instances.instance_at("https://xn--bcher-kva.example/x") == "a"
    assert address("https://" + "ä" * 70 + ".example/") is None


def test_instances_of_all_url_settings_are_joined_by_name() -> None:
    schema: dict[str, Json] = {
        "site": {"type": "url"},
        "api": {"type": "url"},
        "one": {"type": "url"},
        "not_given": {"type": "url"},
    }
    found = find_instances(
        schema,
        {
            "site": {"work": "https://w.example", "home": "https://h.example"},
            "api": {"work": "https://api.w.example"},
            "one": "https://x.example",
        },
    )
    assert found.urls == {
        "work": ("https://w.example", "https://api.w.example"),
        "home": ("https://h.example",),
    }
    assert found.names == ("work", "home")


def test_one_instance_alone_leaves_nothing_to_choose() -> None:
    assert Instances({"work": ("https://w.example",)}).names == ()


def a_plugin(*arguments: str) -> PluginManifest:
    """A plugin of the sites of its setting `site`, with a tool that has these arguments."""
    about = {
        "displayName": "Chat",
        "description": "Reads messages.",
        "urlPatterns": ["https://chat.example/*"],
        "configSchema": {"site": {"type": "url", "label": "Site", "description": "The site"}},
    }
    tool = {
        "name": "send",
        "displayName": "Send",
        "description": "Send a message.",
        "input_schema": {"type": "object", "properties": {each: {} for each in arguments}},
        "output_schema": {"type": "object"},
    }
    package = {"name": "opentabs-plugin-chat", "version": "1.0.0", "opentabs": about}
    return parse_plugin(json.dumps(package), json.dumps({"tools": [tool]}))


SITES: Json = {"one": "https://one.example/", "two": "https://two.example/"}


def test_the_sites_of_instances_are_pages_of_the_plugin() -> None:
    configured = configure(a_plugin("text"), {"site": SITES})
    assert configured.url_patterns == (
        "https://chat.example/*",
        "https://one.example/*",
        "https://two.example/*",
    )
    assert set(configured.instances.names) == {"one", "two"}


def test_a_tool_with_an_argument_of_that_name_cannot_have_instances() -> None:
    with pytest.raises(PluginError, match="its tool 'send' has its own argument 'instance'"):
        configure(a_plugin("text", "instance"), {"site": SITES})


def test_a_tool_is_also_called_by_its_plugin_s_id_as_it_is() -> None:
    assert qualified_names("my-chat", "send") == ("my-chat__send", "my_chat__send")
    assert qualified_names("chat", "send") == ("chat__send",)
