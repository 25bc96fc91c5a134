"""The calls of earlier servers and of other commands, from the audit."""

from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from opentabs_py.audit.history import EVERY, KeptCall, read_calls
from opentabs_py.console.requests import refuse
from opentabs_py.errors import AuditError

AT_ONCE: Final = 200  # calls


class History:
    """Answers with calls of the audit, a page at a time, the newest first.

    Args:
        file: The audit's file.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def routes(self) -> list[BaseRoute]:
        """Return the routes below the console's API."""
        return [Route("/history", self._list)]

    async def _list(self, request: Request) -> Response:
        given = request.query_params.get("before", "")
        if given and not (given.isascii() and given.isdigit() and 0 < len(given) < 16):
            why = "`before` has to be the number of a call."
            return refuse(why, HTTPStatus.BAD_REQUEST)
        read = partial(
            read_calls, self._file, EVERY, before=int(given) if given else None, limit=AT_ONCE
        )
        try:
            kept = await anyio.to_thread.run_sync(read)
        except AuditError as error:
            return refuse(str(error), HTTPStatus.SERVICE_UNAVAILABLE)
        calls = [_row(each) for each in reversed(kept)]
        return JSONResponse({"calls": calls, "more": len(kept) == AT_ONCE})


def _row(kept: KeptCall) -> dict[str, Any]:
    """Return a call in the form of `core.console.rows.call_row`, with what else is known of it."""
    entry = kept.entry
    error = None if entry.code is None else {"code": entry.code, "message": entry.message or ""}
    return {
        "number": kept.number,
        "id": entry.call_id,
        "name": entry.tool,
        "plugin": entry.plugin,
        "state": entry.outcome,
        "timer": None,
        "started": entry.started,
        "seconds": entry.seconds,
        "tab": entry.tab_id,
        "url": None if entry.site is None else f"http://{entry.site}/",
        "client": entry.client,
        "allowed": entry.allowed,
        "reports": 0,
        "progress": None,
        "total": None,
        "message": None,
        "logs": 0,
        "error": error,
        "arguments": entry.arguments,
        "result": entry.result,
    }
