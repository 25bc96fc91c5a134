"""Requests of the console's page: who may make them, and what is in them."""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opentabs_py.console.access import HEADER, Access
from opentabs_py.errors import ConfigError, PluginError, ReviewError

SIGNED_OUT = "This browser has no access, or no longer. Run `opentabs ui`."


class Body(BaseModel):
    """What a request says, as JSON."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


B = TypeVar("B", bound=Body)


class BadRequestError(Exception):
    """A request cannot be answered; the text says why."""

    def __init__(self, why: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(why)
        self.status = status


def refuse(why: str, status: HTTPStatus) -> Response:
    """Return an error response that says why."""
    return JSONResponse({"error": why}, status_code=status)


async def read(request: Request, kind: type[B], *, limit: int) -> B:
    """Return the body of a request.

    Args:
        request: The request.
        kind: What it should be.
        limit: The longest body, in bytes.

    Raises:
        BadRequestError: It is something else, or longer.
    """
    content = bytearray()
    try:
        async for part in request.stream():
            content += part
            if len(content) > limit:
                status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                raise BadRequestError(f"The request is longer than {limit:,} bytes.", status)
        return kind.model_validate_json(bytes(content))
    except ValidationError as error:
        problems: list[Any] = json.loads(error.json(include_url=False, include_input=False))
        texts = [(".".join(map(str, each["loc"])), each["msg"]) for each in problems]
        why = "; ".join(": ".join(filter(None, each)) for each in texts)
        raise BadRequestError(f"The request is not valid. {why}") from None
    except ClientDisconnect:
        raise BadRequestError("The request is not complete.") from None


def answering(
    kind: type[B], handle: Callable[[B], Awaitable[Any]], *, limit: int
) -> Callable[[Request], Awaitable[Response]]:
    """Return what a route calls: it reads a request, and answers with JSON.

    Args:
        kind: What requests should be.
        handle: Returns the answer; a `BadRequestError` or `ConfigError` of it is answered, too.
        limit: The longest body, in bytes.
    """

    async def answer(request: Request) -> Response:
        try:
            return JSONResponse(await handle(await read(request, kind, limit=limit)))
        except BadRequestError as error:
            return refuse(str(error), error.status)
        except (ConfigError, PluginError, ReviewError) as error:
            return refuse(str(error), HTTPStatus.CONFLICT)

    return answer


class Admitted:
    """Forwards requests of browsers that were let in; those that change something, of our page.

    To a page of our extension, which has another origin, the browser shows the answers only if they
    allow it: https://fetch.spec.whatwg.org/#http-cors-protocol. No other origin is ever allowed.

    Args:
        app: The protected application.
        access: Who is let in.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, or answer 401 or 403."""
        headers = Headers(scope=scope)
        origin = self._access.extension_origin(headers)
        if scope["method"] == "OPTIONS" and origin is not None:
            # The browser asks first, without the secret.
            await Response(None, HTTPStatus.NO_CONTENT, _preflight(origin))(scope, receive, send)
            return
        answer: ASGIApp = self._app
        reads = scope["method"] in ("GET", "HEAD")
        is_image = reads and scope["path"].endswith(".svg")  # an element that loads it sends no key
        is_in = self._access.shows(headers) if is_image else self._access.admits(headers)
        if not is_in:
            answer = refuse(SIGNED_OUT, HTTPStatus.UNAUTHORIZED)
        elif not reads:
            why = self._access.refusal(headers)
            answer = self._app if why is None else refuse(why, HTTPStatus.FORBIDDEN)

        async def send_to_extension(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_allow(str(origin)))
            await send(message)

        is_extension = origin is not None and is_in
        await answer(scope, receive, send_to_extension if is_extension else send)


def _allow(origin: str) -> dict[str, str]:
    return {"access-control-allow-origin": origin, "vary": "Origin"}


def _preflight(origin: str) -> dict[str, str]:
    return {
        **_allow(origin),
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": f"authorization, content-type, {HEADER}",
        # https://wicg.github.io/private-network-access/
        "access-control-allow-private-network": "true",
        "access-control-max-age": "600",
    }
