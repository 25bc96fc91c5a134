import json
import os
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from opentabs_py.browser.chromium import Chromium, find_chromium, playwright_download
from opentabs_py.errors import BrowserError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the browsers are shell scripts")

MakeProgram = Callable[[Path], Path]


@pytest.fixture
def make_program(tmp_path: Path) -> MakeProgram:
    """Create an executable at a path; starting it leaves a mark."""

    def make(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch '{tmp_path / 'started'}'\necho 'Chromium 150.0.1.2'\n")
        path.chmod(0o755)
        return path

    return make


def environment(tmp_path: Path, **variables: str) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin"), **variables}


def lay_out_playwright(registry: Path, make_program: MakeProgram, *, complete: bool = True) -> Path:
    place = playwright_download({"PLAYWRIGHT_BROWSERS_PATH": str(registry)})
    assert place is not None
    make_program(place.executable)
    if complete:
        (place.directory / "INSTALLATION_COMPLETE").touch()
    return place.executable


def test_the_variable_wins_over_playwright_and_path(
    tmp_path: Path, make_program: MakeProgram
) -> None:
    named = make_program(tmp_path / "mine" / "chrome")
    lay_out_playwright(tmp_path / "registry", make_program)
    make_program(tmp_path / "bin" / "chromium")

    found = find_chromium(
        environ=environment(
            tmp_path,
            OPENTABS_CHROMIUM=str(named),
            PLAYWRIGHT_BROWSERS_PATH=str(tmp_path / "registry"),
        )
    )

    assert found == Chromium(named, "OPENTABS_CHROMIUM")


def test_a_download_of_playwright_wins_over_path(tmp_path: Path, make_program: MakeProgram) -> None:
    downloaded = lay_out_playwright(tmp_path / "registry", make_program)
    make_program(tmp_path / "bin" / "chromium")

    found = find_chromium(
        environ=environment(tmp_path, PLAYWRIGHT_BROWSERS_PATH=str(tmp_path / "registry"))
    )

    assert found == Chromium(downloaded, "playwright")


@pytest.mark.parametrize("name", ["chromium", "chromium-browser"])
def test_a_chromium_on_path_is_found(tmp_path: Path, make_program: MakeProgram, name: str) -> None:
    program = make_program(tmp_path / "bin" / name)

    assert find_chromium(environ=environment(tmp_path)) == Chromium(program, "PATH")


def test_finding_starts_nothing(tmp_path: Path, make_program: MakeProgram) -> None:
    make_program(tmp_path / "bin" / "chromium")

    find_chromium(environ=environment(tmp_path))

    assert not (tmp_path / "started").exists()


def test_the_default_cache_is_where_playwright_is_looked_for(
    tmp_path: Path, make_program: MakeProgram
) -> None:
    cache = "Library/Caches" if sys.platform == "darwin" else ".cache"
    registry = tmp_path / "home" / cache / "ms-playwright"
    downloaded = lay_out_playwright(registry, make_program)

    assert find_chromium(environ=environment(tmp_path)) == Chromium(downloaded, "playwright")


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no such variable")
def test_xdg_cache_home_moves_the_default_cache(tmp_path: Path, make_program: MakeProgram) -> None:
    downloaded = lay_out_playwright(tmp_path / "xdg" / "ms-playwright", make_program)

    found = find_chromium(environ=environment(tmp_path, XDG_CACHE_HOME=str(tmp_path / "xdg")))

    assert found.path == downloaded


def test_a_browsers_path_of_0_means_beside_the_driver() -> None:
    place = playwright_download({"PLAYWRIGHT_BROWSERS_PATH": "0"})

    assert place is not None
    assert place.directory.parent.name == ".local-browsers"
    assert (place.directory.parents[1] / "browsers.json").is_file()


def test_the_revision_is_the_one_the_installed_playwright_wants(tmp_path: Path) -> None:
    manifest = resources.files("playwright") / "driver" / "package" / "browsers.json"
    wanted = {entry["name"]: entry for entry in json.loads(manifest.read_text())["browsers"]}

    place = playwright_download({"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)})

    assert place is not None
    assert place.directory == tmp_path / f"chromium-{wanted['chromium']['revision']}"


def test_another_revision_is_not_used(tmp_path: Path, make_program: MakeProgram) -> None:
    downloaded = lay_out_playwright(tmp_path / "registry", make_program)
    directory = playwright_download({"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "registry")})
    assert directory is not None
    directory.directory.rename(tmp_path / "registry" / "chromium-1")
    assert not downloaded.exists()

    with pytest.raises(BrowserError, match="Found no Chromium"):
        find_chromium(
            environ=environment(tmp_path, PLAYWRIGHT_BROWSERS_PATH=str(tmp_path / "registry"))
        )


def test_an_interrupted_download_is_not_used(tmp_path: Path, make_program: MakeProgram) -> None:
    lay_out_playwright(tmp_path / "registry", make_program, complete=False)

    with pytest.raises(BrowserError, match="Found no Chromium"):
        find_chromium(
            environ=environment(tmp_path, PLAYWRIGHT_BROWSERS_PATH=str(tmp_path / "registry"))
        )


def test_nothing_found_names_every_way_out(tmp_path: Path) -> None:
    with pytest.raises(BrowserError) as caught:
        find_chromium(environ=environment(tmp_path))

    text = str(caught.value)
    assert "opentabs browser install" in text
    assert "apt install chromium" in text
    assert "OPENTABS_CHROMIUM=" in text
    assert "ms-playwright" in text
    assert "cannot be used" not in text


@pytest.mark.parametrize("name", ["google-chrome", "google-chrome-stable", "microsoft-edge"])
def test_only_a_branded_browser_on_path_is_named_with_the_reason(
    tmp_path: Path, make_program: MakeProgram, name: str
) -> None:
    branded = make_program(tmp_path / "bin" / name)

    with pytest.raises(BrowserError) as caught:
        find_chromium(environ=environment(tmp_path))

    assert f"{branded} cannot be used" in str(caught.value)
    assert "--load-extension" in str(caught.value)


def test_a_chromium_on_path_that_is_really_chrome_is_skipped(
    tmp_path: Path, make_program: MakeProgram
) -> None:
    chrome = make_program(tmp_path / "opt" / "google" / "chrome" / "chrome")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "chromium").symlink_to(chrome)
    other = make_program(tmp_path / "bin" / "chromium-browser")

    assert find_chromium(environ=environment(tmp_path)).path == other


@pytest.mark.parametrize(
    ("place", "brand"),
    [
        ("opt/google/chrome/chrome", "Google Chrome"),
        ("usr/bin/google-chrome-stable", "Google Chrome"),
        ("Google Chrome.app/Contents/MacOS/Google Chrome", "Google Chrome"),
        ("opt/microsoft/msedge/msedge", "Microsoft Edge"),
        ("Microsoft Edge.app/Contents/MacOS/Microsoft Edge", "Microsoft Edge"),
    ],
)
def test_a_branded_browser_in_the_variable_is_refused_by_name(
    tmp_path: Path, make_program: MakeProgram, place: str, brand: str
) -> None:
    branded = make_program(tmp_path / place)

    with pytest.raises(BrowserError, match=f"which is {brand}, .*--load-extension"):
        find_chromium(environ=environment(tmp_path, OPENTABS_CHROMIUM=str(branded)))


@pytest.mark.parametrize(
    "place",
    [
        "chrome-linux64/chrome",
        "Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing",
        "google-chrome-for-testing/chrome",
    ],
)
def test_chrome_for_testing_in_the_variable_is_accepted(
    tmp_path: Path, make_program: MakeProgram, place: str
) -> None:
    program = make_program(tmp_path / place)

    found = find_chromium(environ=environment(tmp_path, OPENTABS_CHROMIUM=str(program)))

    assert found.path == program


def test_a_bare_name_in_the_variable_is_looked_up_on_path(
    tmp_path: Path, make_program: MakeProgram
) -> None:
    program = make_program(tmp_path / "bin" / "ungoogled-chromium")

    found = find_chromium(environ=environment(tmp_path, OPENTABS_CHROMIUM="ungoogled-chromium"))

    assert found == Chromium(program, "OPENTABS_CHROMIUM")


def test_a_headless_shell_in_the_variable_is_refused(
    tmp_path: Path, make_program: MakeProgram
) -> None:
    shell = make_program(tmp_path / "chrome-headless-shell")

    with pytest.raises(BrowserError, match="headless shell, which does not support extensions"):
        find_chromium(environ=environment(tmp_path, OPENTABS_CHROMIUM=str(shell)))


def test_a_wrong_variable_is_an_error_though_path_has_a_chromium(
    tmp_path: Path, make_program: MakeProgram
) -> None:
    make_program(tmp_path / "bin" / "chromium")

    with pytest.raises(BrowserError, match=r"which does not exist.*unset it"):
        find_chromium(environ=environment(tmp_path, OPENTABS_CHROMIUM="/nowhere/chromium"))


def test_a_file_without_the_executable_bit_is_refused(
    tmp_path: Path, make_program: MakeProgram
) -> None:
    program = make_program(tmp_path / "chrome")
    program.chmod(0o644)

    with pytest.raises(BrowserError, match="not executable"):
        find_chromium(environ=environment(tmp_path, OPENTABS_CHROMIUM=str(program)))


def test_a_directory_in_the_variable_is_distinguished_from_a_program(tmp_path: Path) -> None:
    with pytest.raises(BrowserError, match="is a directory, not the executable inside it"):
        find_chromium(environ=environment(tmp_path, OPENTABS_CHROMIUM=str(tmp_path)))


def test_an_empty_variable_counts_as_unset(tmp_path: Path, make_program: MakeProgram) -> None:
    make_program(tmp_path / "bin" / "chromium")

    assert find_chromium(environ=environment(tmp_path, OPENTABS_CHROMIUM="")).source == "PATH"


def test_the_environment_of_the_process_is_the_default(
    tmp_path: Path, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = make_program(tmp_path / "chrome")
    monkeypatch.setitem(os.environ, "OPENTABS_CHROMIUM", str(program))

    assert find_chromium().path == program
