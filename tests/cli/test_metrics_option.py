"""The option `--metrics`."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from opentabs_py.cli.metrics_option import read_address
from opentabs_py.errors import ConfigError
from tests.cli.commands.test_serve import SERVE

WITHOUT_PROMETHEUS = """
import sys
sys.modules["prometheus_client"] = None
from opentabs_py.cli import main
main()
"""


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),
        ("localhost:1", ("localhost", 1)),
        ("[::1]:9464", ("::1", 9464)),
        (None, None),
    ],
)
def test_an_address_is_a_port_with_or_without_a_host(
    text: str | None, address: tuple[str, int] | None
) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize("text", ["", ":9464", "host", "host:", "65536", "::1:9464", "1:2:3", "-1"])
def test_an_invalid_address_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match=r"9464, 0\.0\.0\.0:9464 or \[::\]:9464"):
        read_address(text)


def test_a_port_that_is_in_use_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        run = subprocess.run(
            [*SERVE, "--port", "0", "--metrics", str(port)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=60,
        )
    said = " ".join(run.stderr.split())
    assert run.returncode == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in said
    assert "--metrics 0 picks a free one" in said


def serve_without_prometheus(*options: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Serve over stdio, which ends at once, where the package is not installed."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_PROMETHEUS, "serve", "--stdio", "--port", "0", *options],
        input="",
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=60,
    )


def test_without_the_package_metrics_are_refused_and_the_extra_is_named(tmp_path: Path) -> None:
    run = serve_without_prometheus("--browser", "none", "--metrics", "0", cwd=tmp_path)
    assert run.returncode == 2
    assert "pip install 'opentabs-py[fleet]'" in " ".join(run.stderr.split())


def test_without_the_option_the_package_is_not_needed(tmp_path: Path) -> None:
    run = serve_without_prometheus("--browser", "none", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "MCP at " in run.stderr
