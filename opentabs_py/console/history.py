"""The calls of earlier servers and of other commands, from the audit."""

from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from opentabs_py.audit.history import EVERY, read_calls
from opentabs_py.core.console.rows import earlier_row
from opentabs_py.errors import AuditError
from opentabs_py.server.http.json_requests import refuse

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
        calls = [{"number": each.number, **earlier_row(each.entry)} for each in reversed(kept)]
        return JSONResponse({"calls": calls, "more": len(kept) == AT_ONCE})
