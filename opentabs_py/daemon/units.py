"""Unit files that start a server when its user logs in."""

import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from opentabs_py.config.paths import user_file
from opentabs_py.daemon.log import log_file

_PLAIN: Final = re.compile(r"[\w@%+=:,./-]+")  # needs no quotes
_SPECIAL: Final = re.compile(r'["\\\x00-\x1f\x7f]')  # needs an escape between quotes
# In a file of variables, a value in quotes is read as a POSIX shell reads one: systemd.exec(5),
# "EnvironmentFile=".
_WRITE_VARIABLE: Final = (
    r'''printf '%s="%s"\n' "$name" "$(printenv "$name" | sed 's/["\\$`]/\\&/g')"'''
)


def unit(name: str, arguments: Sequence[str], directory: Path, variables: Mapping[str, str]) -> str:
    """Return the unit of a server for this system: launchd's on macOS, otherwise systemd's.

    Args:
        name: The server's name.
        arguments: The options of `serve`.
        directory: Where it is started.
        variables: Its `OPENTABS_*` variables. Systemd's unit names a file of them instead, because
            units are not a place for secrets: systemd.exec(5), "Environment=".
    """
    command = [sys.executable, "-P", "-m", "opentabs_py", "serve", *arguments, "--name", name]
    command += ["--log-file", str(log_file(name))]
    return (
        _launchd(name, command, directory, variables)
        if sys.platform == "darwin"
        else _systemd(name, command, directory, variables)
    )


def _systemd(name: str, command: Sequence[str], directory: Path, variables: Iterable[str]) -> str:
    executable, *arguments = command
    # Of all items, only the first is not searched for variables.
    items = [_item(executable), *(_item(each).replace("$", "$$") for each in arguments)]
    how = environment = ""
    if names := sorted(variables):
        file = user_file().with_name(f"{name}.env")
        how = f"""\
# First write the settings of this shell to a file, without which the server does not start:
# mkdir -p {shlex.quote(str(file.parent))} && \
(umask 077; for name in {shlex.join(names)}; do {_WRITE_VARIABLE}; done > {shlex.quote(str(file))})
"""
        environment = f"EnvironmentFile={_literal(str(file))}\n"
    return f"""\
# ~/.config/systemd/user/opentabs-{name}.service
{how}# systemctl --user daemon-reload && systemctl --user enable --now opentabs-{name}
[Unit]
Description=OpenTabs server {name}
After=graphical-session.target

[Service]
WorkingDirectory={_literal(str(directory))}
{environment}ExecStart={" ".join(items)}
Restart=on-failure

[Install]
WantedBy=default.target"""


def _item(text: str) -> str:
    """Return an item of a command line: systemd.syntax(7), "Quoting"."""
    if _PLAIN.fullmatch(text):
        return _literal(text)
    return f'"{_literal(_SPECIAL.sub(_escape, text))}"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return f"\\{character}" if character in '"\\' else f"\\x{ord(character):02x}"


def _literal(text: str) -> str:
    """Return a text in which systemd finds no specifier."""
    return text.replace("%", "%%")


def _launchd(
    name: str, command: Sequence[str], directory: Path, variables: Mapping[str, str]
) -> str:
    arguments = "\n".join(f"    <string>{escape(each)}</string>" for each in command)
    environment = "\n".join(
        f"    <key>{escape(each)}</key><string>{escape(value)}</string>"
        for each, value in sorted(variables.items())
    )
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
  <key>EnvironmentVariables</key>
  <dict>
{environment}
  </dict>
  <key>WorkingDirectory</key><string>{escape(str(directory))}</string>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
</dict>
</plist>"""
