"""The copy of the extension that one browser loads."""

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from opentabs_py.browser.stage import kept_secret, stage_extension
from opentabs_py.config.assets import extension_dir
from opentabs_py.errors import PluginError
from opentabs_py.plugins.files import find_script

# The id that Chrome shows for the key in extension/manifest.json.
PINNED = json.loads((extension_dir() / "manifest.json").read_text())["key"]


def test_a_staged_copy_holds_the_extension_and_the_runtime(tmp_path: Path) -> None:
    staged = stage_extension(tmp_path / "extension", port=1234)
    for file in ("manifest.json", "background/index.js", "content/relay.js", "content/runtime.js"):
        assert (staged.path / file).is_file()


def test_a_staged_copy_holds_every_file_that_its_side_panel_names(tmp_path: Path) -> None:
    staged = stage_extension(tmp_path / "extension", port=1234)
    manifest = json.loads((staged.path / "manifest.json").read_text())
    page = staged.path / manifest["side_panel"]["default_path"]
    files = [page, *page.parent.rglob("*.js")]
    named = {
        file.parent / path
        for file in files
        for path in re.findall(
            r"""(?:href="|src="| from ")([\w./]+\.(?:js|css|svg))\"""", file.read_text()
        )
    }
    assert len(named) > 20
    assert [path for path in named if not path.is_file()] == []


def test_its_configuration_says_where_the_server_is_and_only_its_owner_can_read_it(
    tmp_path: Path,
) -> None:
    staged = stage_extension(tmp_path / "extension", port=1234)
    config = staged.path / "config.json"
    assert json.loads(config.read_text()) == {"server": "127.0.0.1:1234", "secret": staged.secret}
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_each_copy_has_its_own_unguessable_secret(tmp_path: Path) -> None:
    secrets = {stage_extension(tmp_path / str(n), port=1).secret for n in range(3)}
    assert len(secrets) == 3
    assert all(len(secret) == 64 for secret in secrets)


def test_a_given_secret_is_kept(tmp_path: Path) -> None:
    assert stage_extension(tmp_path / "x", port=1, secret="mine").secret == "mine"


def test_the_origin_follows_from_the_manifests_key(tmp_path: Path) -> None:
    staged = stage_extension(tmp_path / "extension", port=1)
    scheme, _, host = staged.origin.partition("://")
    assert scheme == "chrome-extension"
    assert len(host) == 32
    assert set(host) <= set("abcdefghijklmnop")
    assert stage_extension(tmp_path / "again", port=1).origin == staged.origin


def test_with_sites_given_the_copy_may_access_only_these(tmp_path: Path) -> None:
    sites = ["https://b.example/*", "https://a.example/*", "https://b.example/*"]
    staged = stage_extension(tmp_path / "extension", port=1, sites=sites)
    manifest = json.loads((staged.path / "manifest.json").read_text())
    assert manifest["host_permissions"] == ["https://a.example/*", "https://b.example/*"]
    assert manifest["key"] == PINNED


def test_staging_again_into_the_same_directory_replaces_the_configuration(tmp_path: Path) -> None:
    stage_extension(tmp_path, port=1, secret="old")
    staged = stage_extension(tmp_path, port=2, secret="new")
    assert json.loads((staged.path / "config.json").read_text()) == {
        "server": "127.0.0.1:2",
        "secret": "new",
    }


def test_reading_a_file_while_it_is_staged_again_returns_all_of_the_old_one(
    tmp_path: Path,
) -> None:
    stage_extension(tmp_path, port=1, sites=["https://a.example/*"], relay_script=b"1")
    names = ["config.json", "manifest.json", "content/channel.js", "content/runtime.js"]
    before = {name: (tmp_path / name).read_bytes() for name in names}
    with contextlib.ExitStack() as stack:
        opened = {name: stack.enter_context((tmp_path / name).open("rb")) for name in names}
        stage_extension(tmp_path, port=2, sites=["https://b.example/*"], relay_script=b"2")
        read = {name: file.read() for name, file in opened.items()}

    assert read == before
    assert (tmp_path / "config.json").read_bytes() != before["config.json"]
    assert list(tmp_path.rglob("*.partial")) == []


def test_a_secret_is_made_once_and_kept_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.touch()  # as left by a killed start
    secret = kept_secret(file)
    assert len(secret) == 64
    assert kept_secret(file) == secret
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@dataclass
class FakeScript:
    content: bytes
    reads: int = 0

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def parts(self) -> Sequence[bytes]:
        self.reads += 1
        return [self.content[:1], self.content[1:]]


def test_a_script_that_the_extension_has_is_not_read_again(tmp_path: Path) -> None:
    staged = stage_extension(tmp_path, port=1)
    script = FakeScript(b"one")
    for _ in range(2):
        staged.add_adapter("chat", script)
    assert script.reads == 1


def test_a_script_that_turns_out_to_be_another_is_not_in_the_extension(tmp_path: Path) -> None:
    (tmp_path / "adapter.js").write_text("x" * 1_000_000)
    script = find_script(tmp_path, "adapter.js", limit=10_000_000)
    staged = stage_extension(tmp_path / "extension", port=1)
    (tmp_path / "adapter.js").write_text("x" * 1_000_000 + "y")

    with pytest.raises(PluginError, match="has changed since the plugin was loaded"):
        staged.add_adapter("chat", script)

    assert list((staged.path / "adapters").iterdir()) == []


def test_an_adapter_is_named_by_its_content(tmp_path: Path) -> None:
    staged = stage_extension(tmp_path, port=1)
    first, again, other = (
        staged.add_adapter("chat", FakeScript(script)) for script in (b"one", b"one", b"two")
    )
    assert first == again != other
    assert first.startswith("adapters/chat-")
    assert (staged.path / first).read_bytes() == b"one"
    assert (staged.path / other).read_bytes() == b"two"
    assert sorted(path.name for path in (staged.path / "adapters").iterdir()) == sorted(
        Path(file).name for file in (first, other)
    )


def test_only_the_scripts_of_a_plugin_that_were_used_last_are_kept(tmp_path: Path) -> None:
    staged = stage_extension(tmp_path, port=1)
    others = [staged.add_adapter(name, FakeScript(b"other")) for name in ("chat-room", "cha")]
    files: list[str] = []
    first = staged.add_adapter("chat", FakeScript(b"the first, built again and again"))
    for number in range(6):
        staged.add_adapter("chat", FakeScript(b"the first, built again and again"))
        files.append(staged.add_adapter("chat", FakeScript(b"%d" % number)))
        # In a moment that file systems tell apart.
        for age, file in enumerate(reversed([*files[:-1], first, files[-1]])):
            if (staged.path / file).exists():
                os.utime(staged.path / file, ns=(0, 10**18 - age * 10**9))

    left = {f"adapters/{path.name}" for path in (staged.path / "adapters").iterdir()}
    assert left == {*others, first, *files[-2:]}


def test_a_pre_script_lies_beside_the_adapters_named_by_its_content(tmp_path: Path) -> None:
    staged = stage_extension(tmp_path, port=1)
    file = staged.add_pre_script("chat", FakeScript(b"one"))
    assert file.startswith("pre-scripts/chat-")
    assert (staged.path / file).read_bytes() == b"one"
    assert file.removeprefix("pre-scripts") == staged.add_adapter("chat", FakeScript(b"one"))[8:]


def test_a_staged_extension_gets_access_to_sites_added_later(tmp_path: Path) -> None:
    staged = stage_extension(tmp_path / "x", port=1, sites=["https://a.example/*"])
    assert not staged.lacks(["https://a.example/*"])
    assert staged.lacks(["https://a.example/*", "https://b.example/*"])

    staged.allow(["https://b.example/*"])

    assert not staged.lacks(["https://b.example/*"])
    assert staged.lacks(["https://a.example/*"])


def test_an_extension_for_every_site_lacks_none(tmp_path: Path) -> None:
    assert not stage_extension(tmp_path / "x", port=1).lacks(["https://a.example/*"])


def test_an_extension_that_must_not_reload_itself_never_lacks_sites(tmp_path: Path) -> None:
    sites = ["https://chat.example/*"]
    staged = stage_extension(tmp_path / "extension", port=1, sites=sites, reloads=False)
    assert not staged.lacks(["https://other.example/*"])


def test_its_version_follows_its_content_where_a_browser_may_have_an_older_one(
    tmp_path: Path,
) -> None:
    def version(directory: Path) -> str:
        return str(json.loads((directory / "manifest.json").read_bytes())["version"])

    usual = version(stage_extension(tmp_path / "a", port=1).path)
    stamped = version(stage_extension(tmp_path / "b", port=1, reloads=False).path)
    again = version(stage_extension(tmp_path / "b", port=2, reloads=False).path)
    assert re.fullmatch(re.escape(usual) + r"\.\d{1,5}", stamped)
    assert again == stamped
