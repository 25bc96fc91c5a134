"""Requests whose body is JSON, and their answers: those of the console, and of commands."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from opentabs_py.core.questions import Answer
from opentabs_py.errors import ConfigError, PluginError, ReviewError


class Body(BaseModel):
    """What a request says, as JSON."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", alias_generator=to_camel)


class AnswerBody(Body):
    """The user's answer to a question.

    Attributes:
        id: The question's id.
        answer: Their answer.
    """

    id: str
    answer: Answer


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
        problems = error.errors(include_url=False, include_context=False, include_input=False)
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
