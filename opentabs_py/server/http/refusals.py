"""What is wrong with a request that no route serves."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request


def why_refused(request: Request, error: HTTPException, *, instead: str) -> str:
    """Return why a request is refused.

    Args:
        request: The request.
        error: Starlette's error: there is no such path, or not for this method.
        instead: What to use if there is no such path.
    """
    path = request.url.path
    if error.status_code == HTTPStatus.NOT_FOUND:
        return f"There is nothing at {path}. {instead}"
    return f"{path} does not serve {request.method}."
