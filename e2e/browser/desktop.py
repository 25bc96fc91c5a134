"""A screen, and a browser on it, started as a user starts it."""

import json
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from e2e.waiting import PATIENT
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.discovery import PORT_FILE
from opentabs_py.config.settings import load_settings

LOG = "chromium.log"
# Where the buttons of Chromium's "Allow remote debugging?" are, in pixels, in a window at the top
# left corner of the screen.
ALLOW, CANCEL = (698, 316), (609, 316)


def missing_programs() -> list[str]:
    """Return the programs that a screen requires and that are not installed."""
    return [program for program in ("Xvfb", "xdotool") if shutil.which(program) is None]


@contextmanager
def screen() -> Generator[str]:
    """Run a screen without a window manager, and yield its name for DISPLAY."""
    read, write = os.pipe()
    # By default it resets when its last client leaves, and drops one that connects at that moment.
    command = ["Xvfb", "-noreset", "-displayfd", str(write), "-screen", "0", "1200x800x24"]
    with subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL) as server:
        os.close(write)
        try:
            with os.fdopen(read) as said:
                yield f":{said.readline().strip()}"
        finally:
            server.terminate()


class Chromium:
    """A Chromium as a user starts it, without any debugging switch."""

    def __init__(self, directory: Path, display: str) -> None:
        self.directory = directory
        self._environment = {**os.environ, "DISPLAY": display}
        self._process: subprocess.Popen[bytes] | None = None

    def allow_debugging(self) -> None:
        """Turn on what chrome://inspect/#remote-debugging turns on."""
        self.directory.mkdir(exist_ok=True)
        setting = {"devtools": {"remote_debugging": {"user-enabled": True}}}
        (self.directory / "Local State").write_text(json.dumps(setting))

    def start(self, url: str) -> None:
        (self.directory / PORT_FILE).unlink(missing_ok=True)
        self._process = self._run(url)

    async def wait_debuggable(self) -> None:
        """Wait until it accepts debugging requests."""
        with anyio.move_on_after(PATIENT):
            while not (self.directory / PORT_FILE).exists():  # noqa: ASYNC110 (made by a process)
                await anyio.sleep(0.1)
            return
        log = (self.directory / LOG).read_text(errors="replace")
        raise AssertionError(f"It is {'' if self.is_running else 'not '}running, and said: {log}")

    def open(self, url: str) -> None:
        """Open a page in the running browser, by a second process that ends at once."""
        assert self._run(url).wait(PATIENT) == 0

    def _run(self, url: str) -> "subprocess.Popen[bytes]":
        command = [str(configured_chromium(load_settings())), f"--user-data-dir={self.directory}"]
        command += ["--no-first-run", "--no-default-browser-check", "--window-position=0,0"]
        command += ["--password-store=basic", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        self.directory.mkdir(exist_ok=True)
        with (self.directory / LOG).open("ab") as log:
            return subprocess.Popen([*command, url], env=self._environment, stdout=log, stderr=log)

    async def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            await anyio.to_thread.run_sync(self._process.wait)
            self._process = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def click(self, place: tuple[int, int]) -> None:
        self._do("mousemove", *map(str, place), "click", "1")

    def press(self, key: str) -> None:
        self._do("key", key)

    def _do(self, *what: str) -> None:
        command = ["xdotool", *what]
        subprocess.run(command, env=self._environment, check=True, timeout=PATIENT)
