"""`opentabs call` with a server that is running: what happens there is shown here.

Imports neither Playwright nor the MCP SDK, which together take longer than the call.
"""

import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from opentabs_py.cli.call_outcome import failed_outcome, print_outcome
from opentabs_py.cli.exit_codes import OF_CALL, code_of
from opentabs_py.cli.prompts import is_someone_there
from opentabs_py.cli.signals import exit_at_signals
from opentabs_py.cli.terminal_questions import TerminalQuestions
from opentabs_py.core import codes
from opentabs_py.core.plugins.file_names import PACKAGE
from opentabs_py.core.questions import Answer, Place, Question
from opentabs_py.daemon.local_client import LocalClient
from opentabs_py.daemon.state import ServerState, name_flag
from opentabs_py.errors import ChainError, ConfigError, ErrorDetail, OpenTabsError

# Where plugins may be named besides the command line.
VARIABLES = ("OPENTABS_PLUGINS", "OPENTABS_PLUGIN_FOLDERS")


def call_running(
    state: ServerState,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    plugins: Sequence[Path],
    plugin_folders: Sequence[Path],
    urls: Sequence[str],
    idle: str | None,
    ceiling: str | None,
    as_json: bool,
) -> int:
    """Call a tool of a running server, show what happens, and return the exit code.

    Args:
        state: The server.
        tool: The tool's name.
        arguments: Its arguments.
        plugins: Directories of plugins that the call needs.
        plugin_folders: Folders that contain such directories.
        urls: Pages to open for the call.
        idle: Seconds of silence that end the call, as typed.
        ceiling: Seconds that the call may take, as typed.
        as_json: Print one JSON document.

    Raises:
        ConfigError: An option is not valid, or the server refused the call.
        ChainError: The server does not answer.
    """
    directories, folders = _plugins(plugins, plugin_folders)
    request = {
        "tool": tool,
        "arguments": arguments,
        "idle": _seconds("idle", idle),
        "ceiling": _seconds("ceiling", ceiling),
        "plugins": [str(each.absolute()) for each in directories],
        "pluginFolders": [str(each.absolute()) for each in folders],
        "open": [*urls],
        "canAsk": not as_json and is_someone_there(),
        "explain": not as_json,
    }
    exit_at_signals()
    began = time.perf_counter()
    try:
        last = _show(state, request, as_json=as_json)
        if "refused" in last:
            if last["failed"] == "caller":
                raise ConfigError(last["refused"])
            raise ChainError(ErrorDetail(codes.CHAIN_FAILED, last["refused"], category="chain"))
    except OpenTabsError as error:
        if not as_json:
            raise
        print_outcome(failed_outcome(error, time.perf_counter() - began), as_json=True)
        return code_of(error)
    print_outcome(last["outcome"], as_json=as_json)
    return OF_CALL[last["failed"]]


def _show(state: ServerState, request: Mapping[str, Any], *, as_json: bool) -> dict[str, Any]:
    """Make a call, show what happens until it ends, and return the last document."""
    from opentabs_py.calling.plugin_log import PLUGINS
    from opentabs_py.cli.log import log_to_stderr
    from opentabs_py.cli.terminal import progress_bar, warn

    if not as_json:
        log_to_stderr(level=logging.WARNING)
    log = logging.getLogger(PLUGINS)
    reports: list[dict[str, Any]] = []
    client, answering = LocalClient(state), Lock()
    with (
        progress_bar("Calling", quiet=as_json) as bar,
        closing(TerminalQuestions(partial(_answer, client, answering), bar.pause)) as questions,
        closing(client.call(request)) as events,
    ):
        for event in events:
            match event:
                case {"say": text}:
                    bar.say(text)
                case {"progress": report}:
                    reports.append(report)
                    bar.update(report["progress"], report["total"], report["message"])
                case {"log": {"level": level, "message": message}}:
                    log.log(logging.getLevelNamesMapping()[level.upper()], "%s", message)
                case {"warning": text}:
                    if not as_json:
                        warn(text)
                case {"question": fields}:
                    fields["answers"] = tuple(fields["answers"])
                    fields["place"] = Place(**fields["place"])
                    questions.show([Question(**fields)])
                case {"questionEnded": _}:
                    questions.show([])
                case {"outcome": outcome}:
                    with answering:  # what the user should know about their answer comes first
                        return {**event, "outcome": {**outcome, "progress": reports}}
                case _:
                    return event
    message = (
        f"The server {state.name!r} stopped before the call ended; the tool may have run. See "
        f"`opentabs logs{name_flag(state.name)}`."
    )
    raise ChainError(ErrorDetail(codes.SERVER_STOPPED, message, category="lost"))


def _answer(client: LocalClient, answering: Lock, question_id: str, answer: Answer) -> None:
    from opentabs_py.cli.terminal import warn

    with answering, suppress(ChainError):  # as the call itself will say
        if note := client.answer(question_id, answer):
            warn(note)


def _plugins(
    plugins: Sequence[Path], folders: Sequence[Path]
) -> tuple[Sequence[Path], Sequence[Path]]:
    """Return the plugins that the call needs, wherever they are named."""
    if plugins or folders:
        return plugins, folders
    if _is_configured_here():
        from opentabs_py.cli.options import gather_settings

        settings = gather_settings()
        return settings.plugins, settings.plugin_folders
    here = Path()
    if not (here / PACKAGE).is_file():
        return [], []
    from opentabs_py.plugins.load import is_plugin

    return ([here] if is_plugin(here) else []), []


def _is_configured_here() -> bool:
    """Return whether the environment or the project may name plugins: reading them takes long."""
    if any(each in os.environ for each in VARIABLES):
        return True
    try:
        return "tool.opentabs" in Path("pyproject.toml").read_text("utf-8", "replace")
    except OSError:
        return False


def _seconds(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        from opentabs_py.config.settings import load_settings

        load_settings(**{name: text})  # which says what is wrong with it
    return seconds
