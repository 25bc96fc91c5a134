import io
import os
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from opentabs_py.browser.chromium import Chromium, playwright_download
from opentabs_py.browser.install import install_chromium, run
from opentabs_py.errors import BrowserError
from tests.waiting import PATIENT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts")

NO_DOWNLOAD = {"PLAYWRIGHT_BROWSERS_PATH": "/dev/null"}  # fails sooner than five times 404
CHROMIUM = "#!/bin/sh\necho 'Chromium 150.0.1.2'\n"
CHROMIUM_WITHOUT_LIBRARIES = "#!/bin/sh\necho 'libnss3.so: cannot open shared object'\nexit 127\n"


@dataclass
class Downloads:
    """A server that replaces the one from which Playwright downloads.

    Attributes:
        archive: The response to every download; without one, 404.
        paths: The requested paths.
    """

    host: str = ""
    archive: bytes | None = None
    paths: list[str] = field(default_factory=list)

    def offer(self, program: str) -> None:
        place = playwright_download({"PLAYWRIGHT_BROWSERS_PATH": "/"})
        assert place is not None
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(str(place.executable.relative_to(place.directory)), program)
            archive.writestr("ffmpeg-linux", program)  # comes with every browser
            archive.writestr("ffmpeg-mac", program)
        self.archive = packed.getvalue()


@pytest.fixture
def downloads() -> Iterator[Downloads]:
    served = Downloads()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.paths.append(self.path)
            body = served.archive or b""
            self.send_response(200 if served.archive else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.host = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture
def environ(tmp_path: Path, downloads: Downloads) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": str(tmp_path / "bin"),
        "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "registry"),
        "PLAYWRIGHT_DOWNLOAD_HOST": downloads.host,
    }


def add_program(tmp_path: Path, name: str, script: str) -> Path:
    program = tmp_path / "bin" / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def add_apt_get(tmp_path: Path, *, packages: str) -> Path:
    """Put an apt-get that knows some packages on the path; return the log of its calls."""
    log = tmp_path / "apt.log"
    (tmp_path / "package").write_text(CHROMIUM)
    add_program(
        tmp_path,
        "apt-get",
        f"""
        echo "$1" >> '{log}'
        [ "$1" = update ] && exit 0
        for package; do :; done
        case " {packages} " in
            *" $package "*) ;;
            *) echo "E: Package '$package' has no installation candidate"; exit 100 ;;
        esac
        /bin/cp '{tmp_path / "package"}' "{tmp_path}/bin/$package"
        /bin/chmod 755 "{tmp_path}/bin/$package"
        """,
    )
    return log


def test_an_existing_chromium_is_returned_without_a_download(
    tmp_path: Path, environ: dict[str, str], downloads: Downloads
) -> None:
    there = add_program(tmp_path, "chromium", "")
    reports: list[str] = []

    found = install_chromium(reports.append, environ=environ)

    assert found == Chromium(there, "PATH")
    assert downloads.paths == []
    assert reports == []


def test_playwright_downloads_one_when_there_is_none(
    environ: dict[str, str], downloads: Downloads
) -> None:
    downloads.offer(CHROMIUM)
    reports: list[str] = []

    found = install_chromium(reports.append, environ=environ, as_root=False)

    place = playwright_download(environ)
    assert place is not None
    assert found == Chromium(place.executable, "playwright")
    assert not any("headless" in path for path in downloads.paths)
    assert any("Downloading" in line for line in reports)
    assert reports[-1] == f"Chromium is at {found.path}"


def test_apt_follows_a_download_that_fails(tmp_path: Path, environ: dict[str, str]) -> None:
    log = add_apt_get(tmp_path, packages="chromium")

    found = install_chromium(lambda _: None, environ=environ, as_root=True)

    assert found == Chromium(tmp_path / "bin" / "chromium", "PATH")
    assert log.read_text().split() == ["update", "install"]


def test_the_package_of_ubuntu_follows_that_of_debian(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    add_apt_get(tmp_path, packages="chromium-browser")

    found = install_chromium(lambda _: None, environ=environ | NO_DOWNLOAD, as_root=True)

    assert found.path == tmp_path / "bin" / "chromium-browser"


def test_apt_runs_through_sudo_that_asks_no_password(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    add_apt_get(tmp_path, packages="chromium")
    sudo_log = tmp_path / "sudo.log"
    add_program(tmp_path, "true", "")
    add_program(tmp_path, "sudo", f"printf '%s\\n' \"$*\" >> '{sudo_log}'; shift; exec \"$@\"")

    install_chromium(lambda _: None, environ=environ | NO_DOWNLOAD, as_root=False)

    assert all(line.startswith("-n ") for line in sudo_log.read_text().splitlines())
    assert "apt-get install" in sudo_log.read_text()


def test_apt_is_not_run_when_sudo_wants_a_password(tmp_path: Path, environ: dict[str, str]) -> None:
    log = add_apt_get(tmp_path, packages="chromium")
    add_program(tmp_path, "sudo", 'echo "sudo: a password is required" >&2; exit 1')

    with pytest.raises(BrowserError, match=r"apt-get install chromium: not tried: needs root"):
        install_chromium(lambda _: None, environ=environ | NO_DOWNLOAD, as_root=False)

    assert not log.exists()


def test_when_all_fail_the_error_has_each_reason_and_every_way_out(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    add_apt_get(tmp_path, packages="none")

    with pytest.raises(BrowserError) as caught:
        install_chromium(lambda _: None, environ=environ, as_root=True)

    text = str(caught.value)
    assert "playwright install chromium: Error: Download failed: server returned code 404" in text
    assert "apt-get install chromium: E: Package 'chromium' has no installation candidate" in text
    assert "apt-get install chromium-browser: E: Package" in text
    assert "opentabs browser install" in text
    assert "OPENTABS_CHROMIUM=" in text


def test_without_apt_only_the_download_is_tried(environ: dict[str, str]) -> None:
    with pytest.raises(BrowserError) as caught:
        install_chromium(lambda _: None, environ=environ | NO_DOWNLOAD, as_root=True)

    assert "apt-get" not in str(caught.value)


def test_an_installed_chromium_that_does_not_start_is_reported_as_such(
    environ: dict[str, str], downloads: Downloads
) -> None:
    downloads.offer(CHROMIUM_WITHOUT_LIBRARIES)

    with pytest.raises(BrowserError, match=r"does not start: libnss3\.so: cannot open shared"):
        install_chromium(lambda _: None, environ=environ, as_root=False)


def test_a_wrong_variable_is_an_error_and_installs_nothing(
    environ: dict[str, str], downloads: Downloads
) -> None:
    downloads.offer(CHROMIUM)

    with pytest.raises(BrowserError, match="OPENTABS_CHROMIUM is '/nowhere'"):
        install_chromium(lambda _: None, environ={**environ, "OPENTABS_CHROMIUM": "/nowhere"})

    assert downloads.paths == []


def test_a_reporter_that_raises_ends_the_installer(tmp_path: Path, environ: dict[str, str]) -> None:
    pid_file = tmp_path / "pid"
    add_program(
        tmp_path, "apt-get", f"echo $$ > '{pid_file}'; echo 'Get:1 chromium'; exec /bin/sleep 600"
    )

    def interrupt(line: str) -> None:
        if "Get:1" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install_chromium(interrupt, environ=environ | NO_DOWNLOAD, as_root=True)

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_command_over_its_limit_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    class LateTimer(threading.Timer):
        """Begins when the command has begun, however long that takes."""

        def run(self) -> None:
            begun.wait(PATIENT)
            super().run()

    monkeypatch.setattr(threading, "Timer", LateTimer)
    pid_file = tmp_path / "pid"
    (tmp_path / "bin").mkdir()
    script = f"echo $$ > '{pid_file}'; echo begun; /bin/sleep 600 & wait"
    stuck = add_program(tmp_path, "stuck", script)

    failure = run([str(stuck)], {}, limit=0.3, on_line=lambda _: begun.set())

    assert failure == "took longer than 0.3 s"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_package_that_brings_no_chromium_is_reported_as_such(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    add_program(tmp_path, "apt-get", "")

    with pytest.raises(BrowserError, match="apt-get install chromium: succeeded, but Chromium"):
        install_chromium(lambda _: None, environ=environ | NO_DOWNLOAD, as_root=True)


def test_a_command_that_is_not_there_fails_with_the_reason_of_the_system() -> None:
    failure = run(["/nowhere/apt-get"], {}, limit=5, on_line=lambda _: None)

    assert failure == "[Errno 2] No such file or directory: '/nowhere/apt-get'"


def test_a_command_that_fails_silently_is_reported_by_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    silent = add_program(tmp_path, "silent", "exit 3")

    failure = run([str(silent)], {}, limit=5, on_line=lambda _: None)

    assert failure == "exit code 3, without any output"
