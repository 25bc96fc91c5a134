"""The page itself, and how a browser is let in by the token in its URL."""

from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from opentabs_py.console.access import Access

_CONTINUE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={to}">
<link rel="icon" href="/console/icon.svg">
<title>OpenTabs</title>
<p><a href="{to}">Open the page</a></p>
"""


class Entrance:
    """Answers requests for the page.

    Args:
        access: Who is let in.
        directory: Has the page, `index.html`, and `signed_out.html` for other browsers.
        policy: The page's Content-Security-Policy, if it is not that of all pages.
    """

    def __init__(self, access: Access, directory: Path, *, policy: str | None = None) -> None:
        self._access = access
        self._directory = directory
        self._headers = {} if policy is None else {"content-security-policy": policy}

    async def show(self, request: Request) -> Response:
        """Show the page; with a token, let the browser in first."""
        token = request.query_params.get("token")
        is_in = self._access.shows(request.headers)
        # Starlette sends HEAD here too, with which other programs check links. It opens no page, so
        # it must not use up the token.
        if token is not None and request.method == "GET":
            entered = self._access.enter(token, request.scope)
            if entered is not None:
                session, key = entered
                # No redirect: after a link in a page of another site, such as a terminal in a
                # browser, the redirected request would come without the cookie.
                page = _CONTINUE.format(to=f"/#key={key}")
                answer = HTMLResponse(page, headers={"cache-control": "no-store"})
                answer.set_cookie(
                    self._access.cookie, session, path="/", httponly=True, samesite="strict"
                )
                return answer
            if is_in:
                return HTMLResponse(_CONTINUE.format(to="/"))
        if not is_in:
            return FileResponse(self._directory / "signed_out.html", HTTPStatus.UNAUTHORIZED)
        return FileResponse(self._directory / "index.html", headers=self._headers)
