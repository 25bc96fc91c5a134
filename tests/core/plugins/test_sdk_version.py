"""Which SDK a plugin may have been built with."""

import json
from pathlib import Path

import pytest

from opentabs_py.core.plugins.manifest_files import parse_plugin
from opentabs_py.core.plugins.sdk_version import KNOWN
from opentabs_py.errors import PluginError
from tests.fakes import a_tool, package_json


def parse(**members: object) -> str | None:
    tools = {"tools": [a_tool("send")], **members}
    return parse_plugin(package_json(), json.dumps(tools)).sdk_version


@pytest.mark.parametrize(
    "version", ["0.0.1", "0.0.115", "0.1.0", "0.1.0-rc.1", "0.1.99", "0.1.0+build.7"]
)
def test_a_plugin_of_the_sdk_that_is_known_or_of_an_older_one_is_read(version: str) -> None:
    assert parse(sdkVersion=version) == version


@pytest.mark.parametrize("version", ["0.2.0", "0.2.0-beta.1", "0.10.0", "1.0.0", "99.0.0"])
def test_a_plugin_of_a_newer_sdk_is_refused_with_what_to_do(version: str) -> None:
    with pytest.raises(PluginError) as caught:
        parse(sdkVersion=version)
    assert str(caught.value) == (
        "The plugin is not valid; it has 1 problem:\n"
        f"  dist/tools.json: sdkVersion: is {version}, but this version of opentabs-py supports "
        "the plugin SDK only up to 0.1; install a newer one, or build the plugin again with this "
        "one"
    )


def test_other_problems_in_a_plugin_of_a_newer_sdk_are_not_reported() -> None:
    with pytest.raises(PluginError, match="it has 1 problem"):
        parse(sdkVersion="99.0.0", tools={"send": {}}, preScriptFile=["a", "b"])


@pytest.mark.parametrize("version", ["latest", "1", "", "1.2.3.4", "0.1." + "9" * 5000, 1, 0.1])
def test_what_is_not_a_version_is_refused(version: object) -> None:
    with pytest.raises(PluginError, match="sdkVersion: is ") as caught:
        parse(sdkVersion=version)
    assert 'such as "0.1.0"' in str(caught.value)


@pytest.mark.parametrize("members", [{}, {"sdkVersion": None}])
def test_a_plugin_need_not_say_its_sdk(members: dict[str, object]) -> None:
    assert parse(**members) is None


def test_the_sdk_that_is_known_is_the_one_that_this_package_builds_with() -> None:
    sdk = Path(__file__).parents[3] / "adapter_js" / "sdk" / "package.json"
    major, minor, _ = json.loads(sdk.read_bytes())["version"].split(".")
    assert (int(major), int(minor)) == KNOWN
