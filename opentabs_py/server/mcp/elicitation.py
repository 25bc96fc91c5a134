"""Ask the user of an MCP client whether a call may run, through that client.

A client of the initialize era answers a request of ours while its call waits. One of 2026-07-28
gets the question as the call's result, and repeats the call with the answer.
"""

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types.methods import is_input_required
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from opentabs_py.calling.client import Asker
from opentabs_py.core import codes, failures
from opentabs_py.core.questions import ASK_FOR, About, Answer, Place, Question
from opentabs_py.errors import CallRefusedError, ErrorDetail
from opentabs_py.server.mcp.connections import ClientConnection
from opentabs_py.server.mcp.drops import find_drop
from opentabs_py.server.mcp.forms import Forms, make_form, read_answers

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.request_state import RequestStateBoundary

MOST_ASKED: Final = 10_000  # questions that a client has not come back with
_KEY: Final = "consent"  # of our question among a call's input requests


class ConsentAskedError(CallRefusedError):
    """The client has to ask its user, and repeat the call with the answer.

    Attributes:
        result: The result that tells the client to do so.
    """

    def __init__(self, tool: str, result: types.InputRequiredResult) -> None:
        message = f"The user is asked about {tool}; its client calls again with the answer."
        super().__init__(ErrorDetail(codes.CONSENT_ASKED, message, category="permission"))
        self.result = result


@dataclass(frozen=True, slots=True)
class Answered:
    """What the user has answered about a call so far.

    Attributes:
        answers: The answers, by what was asked.
        place: Where the call would run, as the question about its permission said.
    """

    answers: Mapping[About, Answer] = field(default_factory=dict[About, Answer])
    place: Place | None = None


class _Seal:
    """Seals what a client has to send back, and opens it again, by the SDK's boundary.

    The boundary is loaded with the first question, because it takes 9 MB of memory.

    Args:
        audience: The server's name.
    """

    def __init__(self, audience: str) -> None:
        self._audience = audience

    @cached_property
    def _boundary(self) -> "RequestStateBoundary":
        from mcp.server.request_state import (  # noqa: PLC0415
            RequestStateBoundary,
            RequestStateSecurity,
        )

        security = RequestStateSecurity.ephemeral(ttl=ASK_FOR)
        return RequestStateBoundary(security, default_audience=self._audience)

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: "CallNext"
    ) -> "HandlerResult":
        if "requestState" in (ctx.params or {}):
            return await self._boundary(ctx, call_next)
        result = await call_next(ctx)
        if not is_input_required(result):
            return result

        async def answered(_: ServerRequestContext[Any, Any]) -> "HandlerResult":
            return result

        return await self._boundary(ctx, answered)


class Retries:
    """Recognizes calls that clients of 2026-07-28 repeat with an answer, each once.

    Args:
        server: The server that they call; what it gives them to send back is sealed, so that an
            answer counts only for the call that was asked about.
    """

    def __init__(self, server: Server[Any]) -> None:
        # When a question expires, what it is about, and what was answered before it, by its token;
        # the first to expire comes first.
        self._asked: OrderedDict[str, tuple[float, About, Answered]] = OrderedDict()
        server.middleware.append(_Seal(server.name))

    def ask(self, question: Question, before: Answered) -> types.InputRequiredResult:
        """Return the result that has a client ask its user.

        Args:
            question: The question.
            before: What was answered about the call before.
        """
        if question.about == "permission":
            before = replace(before, place=question.place)
        token, now = secrets.token_hex(8), anyio.current_time()
        self._asked[token] = now + ASK_FOR, question.about, before
        while len(self._asked) > MOST_ASKED or next(iter(self._asked.values()))[0] <= now:
            self._asked.popitem(last=False)
        message, schema = make_form([question])
        params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
        request = types.ElicitRequest(params=params)
        return types.InputRequiredResult(input_requests={_KEY: request}, request_state=token)

    def read(self, params: types.CallToolRequestParams) -> Answered:
        """Return the answers that a call comes with; none if it came with them before."""
        asked = self._asked.pop(params.request_state or "", None)
        if asked is None:
            return Answered()
        expires, about, before = asked
        result = (params.input_responses or {}).get(_KEY)
        if expires < anyio.current_time() or not isinstance(result, types.ElicitResult):
            return Answered()
        return replace(before, answers={**before.answers, about: read_answers(result, 1)[0]})


class RetryAsker:
    """Asks the user of a client of 2026-07-28.

    Args:
        answered: The answers that the call came with.
        retries: Recognize the call that is repeated.

    Attributes:
        asked_place: Where the call would run, as the question about its permission said.
    """

    is_immediate = True

    def __init__(self, answered: Answered, retries: Retries) -> None:
        self._answered = answered
        self.asked_place = answered.place
        self._retries = retries

    async def ask(self, question: Question, /) -> Answer:
        """Return the answer that the call came with.

        Raises:
            ConsentAskedError: It came with none to this question.
        """
        answer = self._answered.answers.get(question.about)
        if answer is None or answer not in question.answers:
            raise ConsentAskedError(question.tool, self._retries.ask(question, self._answered))
        return answer


class FormAsker:
    """Asks the user of a client of the initialize era.

    Args:
        ctx: The call's request.
        forms: The forms of its connection.
    """

    is_immediate = False
    asked_place: Place | None = None

    def __init__(self, ctx: ServerRequestContext[Any], forms: Forms) -> None:
        self._ctx = ctx
        self._forms = forms
        self._drop = find_drop(ctx.request)

    async def ask(self, question: Question, /) -> Answer:
        """Return the answer.

        Raises:
            CallRefusedError: The client could not ask its user after all.
        """
        # No answer can come once the connection has dropped, and the form would block the next.
        with self._drop.cancelling():
            return await self._forms.ask(question, self._elicit)
        raise failures.client_gone(question.tool)

    async def _elicit(self, message: str, schema: dict[str, Any]) -> types.ElicitResult:
        return await self._ctx.session.elicit_form(message, schema, self._ctx.request_id)


def find_asker(
    ctx: ServerRequestContext[Any],
    params: types.CallToolRequestParams,
    connection: ClientConnection,
    retries: Retries,
) -> Asker | None:
    """Return what asks the user of the client that makes a call; None if the client cannot."""
    capabilities = ctx.session.client_capabilities
    can = None if capabilities is None else capabilities.elicitation
    # Before 2025-11-25 there were only forms, and the capability was empty.
    if can is None or (can.form is None and can.url is not None):
        return None
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return RetryAsker(retries.read(params), retries)
    return FormAsker(ctx, connection.forms)
