"""Unit files that start a server when its user logs in."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from opentabs_py.daemon.log import log_file


def unit(name: str, arguments: Sequence[str], directory: Path) -> str:
    """Return the unit of a server for this system: launchd's on macOS, otherwise systemd's."""
    command = [sys.executable, "-m", "opentabs_py", "serve", *arguments, "--name", name]
    command += ["--log-file", str(log_file(name))]
    return (
        _launchd(name, command, directory)
        if sys.platform == "darwin"
        else _systemd(name, command, directory)
    )


def _systemd(name: str, command: Sequence[str], directory: Path) -> str:
    # systemd expands % and $ in a command line.
    line = " ".join(shlex.quote(each).replace("%", "%%").replace("$", "$$") for each in command)
    return f"""\
# ~/.config/systemd/user/opentabs-{name}.service
# systemctl --user daemon-reload && systemctl --user enable --now opentabs-{name}
[Unit]
Description=OpenTabs server {name}
After=graphical-session.target

[Service]
WorkingDirectory={directory}
ExecStart={line}
Restart=on-failure

[Install]
WantedBy=default.target"""


def _launchd(name: str, command: Sequence[str], directory: Path) -> str:
    arguments = "\n".join(f"    <string>{escape(each)}</string>" for each in command)
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!-- ~/Library/LaunchAgents/opentabs.{name}.plist
     launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/opentabs.{name}.plist -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>opentabs.{name}</string>
  <key>ProgramArguments</key>
  <array>
{arguments}
  </array>
  <key>WorkingDirectory</key><string>{escape(str(directory))}</string>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
</dict>
</plist>"""
