"""The gate between a checked call and its dispatch: let it run, ask the user, or refuse it."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import anyio

from opentabs_py.calling.client import Asker, CallClient
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.listeners import Listeners
from opentabs_py.consent.questions import Questions
from opentabs_py.core import consent, failures
from opentabs_py.core.consent import Decision, GatedTool, GivenRules, Permission
from opentabs_py.core.questions import (
    ANSWERS,
    NOWHERE,
    About,
    Answer,
    Place,
    Question,
    arguments_text,
)
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import CallError, CallRefusedError, ConfigError

logger = logging.getLogger(__name__)

REMIND_AFTER = 10.0  # s; TypeScript clients give up after 60 s without progress


async def _nowhere() -> Place:
    return NOWHERE


async def _never(_place: Place) -> NoReturn:
    while True:
        await anyio.sleep_forever()


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A call that needs permission.

    Attributes:
        tool: Its tool.
        title: The tool's name for users.
        arguments: Its arguments.
        client_name: Who makes it, if they have said.
        client: The client that makes it; None for a call from within this process.
        call_id: Its id.
        notify_waiting: Called with why the call waits, now and then until it does not.
        is_nested: Whether a running tool makes it, so that its client cannot repeat it.
        find_place: Returns where it would run now.
        wait_gone: Returns why it can no longer run in that place, once it cannot.
    """

    tool: GatedTool
    title: str
    arguments: Mapping[str, Any]
    client_name: str | None = None
    client: CallClient | None = None
    call_id: str | None = None
    notify_waiting: Callable[[str], None] = lambda _why: None
    is_nested: bool = False
    find_place: Callable[[], Awaitable[Place]] = _nowhere
    wait_gone: Callable[[Place], Awaitable[CallError]] = _never


@dataclass(frozen=True, slots=True)
class Permit:
    """What lets a call run.

    Attributes:
        by: Who or what allows it, as the audit records it.
        place: Where the user has allowed it to run; None if they were not asked.
    """

    by: str
    place: Place | None = None


AUTO = Permit("auto")


@dataclass(frozen=True, slots=True)
class AnswerEffect:
    """What an answer has done.

    Attributes:
        counts: Whether its question still waited for it.
        note: What the user should know about it; empty if nothing.
    """

    counts: bool
    note: str = ""


@dataclass(slots=True)
class _Handling:
    """The handling of an answer: what comes after a question, and before its call runs."""

    done: anyio.Event = field(default_factory=anyio.Event)
    note: str = ""


class Gate:
    """Lets calls run, asks the user first, or refuses them, as the settings say.

    Args:
        clock: The clock on which questions expire.
        rules: The permissions in the settings.
        remember: Adds a rule to the user's settings; None if there are none to write to.

    Attributes:
        questions: Those that wait for the user.
        nobody_to_ask: Returns the error for a call that the user would have to allow, where nobody
            can be asked, given the names of its tool and of the rule that allows it.
    """

    def __init__(
        self,
        clock: AlarmClock,
        rules: Mapping[str, Permission] | None = None,
        *,
        remember: Callable[[str, Permission], Awaitable[None]] | None = None,
    ) -> None:
        self.questions = Questions(clock)
        self.nobody_to_ask: Callable[[str, str], CallRefusedError] = failures.nobody_to_ask
        self._clock = clock
        self._given = GivenRules(rules or {})
        self._rules = self._given.all
        self._remember = remember
        # A client's session, and a tool's owner and name; a later owner's may have the same name.
        self._granted: set[tuple[SessionKey, str, str]] = set()
        self._handling: dict[str, _Handling] = {}  # by question
        self._changes: Listeners[[]] = Listeners("permissions")

    @property
    def rules(self) -> Mapping[str, Permission]:
        """The permissions in the settings, and those given since."""
        return self._rules

    def set_rules(self, rules: Mapping[str, Permission]) -> None:
        """Use the permissions of changed settings from now on, for calls that wait as well.

        A permission given since then counts until the settings say something new about its rule.
        """
        self._given.handle_settings(rules)
        self._use_given()

    def _use_given(self) -> None:
        if self._given.all != self._rules:
            self._rules = self._given.all
            self._changes.notify()

    async def remember(self, rule: str, permission: Permission) -> None:
        """Use another permission from now on, and add it to the user's settings.

        Raises:
            ConfigError: The permission is used only until the server stops: the settings file
                cannot be written, or what it says does not count.
        """
        self._given.give(rule, permission)
        self._use_given()
        if self._remember is not None:
            await self._remember(rule, permission)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function whenever the permissions change; return the unsubscriber."""
        return self._changes.subscribe(listener)

    def decide(self, tool: GatedTool) -> Decision:
        """Return what happens to a tool's calls."""
        return consent.decide(self._rules, tool)

    def forget(self, client: SessionKey) -> None:
        """Handle the end of a client's session: revoke what was allowed for it."""
        self._granted = {each for each in self._granted if each[0] != client}

    async def permit(self, request: PermissionRequest, decision: Callable[[], Decision]) -> Permit:
        """Return what lets a call run, once it may.

        Args:
            request: The call.
            decision: Returns what happens to the tool's calls now.

        Raises:
            CallRefusedError: It is not allowed.
            CallError: Its client has to repeat it with the answer of its user.
        """
        return self._find_permit(request, decision()) or await self._ask(request, decision)

    def _find_permit(self, request: PermissionRequest, decided: Decision) -> Permit | None:
        """Return what lets a call run without asking the user; None if nothing does.

        Raises:
            CallRefusedError: Its tool is turned off.
        """
        tool = request.tool
        if decided.permission == "auto":
            return AUTO
        if decided.permission == "off":
            raise failures.turned_off(tool.name, tool.rule, decided)
        session_key = _session_key(request)
        is_granted = (session_key, tool.owner, tool.name) in self._granted
        return Permit("asked: session") if is_granted else None

    async def answer(self, question_id: str, answer: Answer, *, by: str) -> AnswerEffect:
        """Answer a question, and wait until that has been handled; see `Questions.answer`."""
        handling = self._handling.get(question_id, _Handling())
        if not self.questions.answer(question_id, answer, by=by):
            return AnswerEffect(counts=False)
        if answer == "always":
            await handling.done.wait()
        return AnswerEffect(counts=True, note=handling.note)

    async def _handle_answer(self, request: PermissionRequest, answer: Answer) -> str:
        """Remember an answer that is about other calls of the tool as well.

        Returns:
            What its user should know about that.
        """
        tool, session_key = request.tool, _session_key(request)
        if answer == "session" and session_key is not None:
            self._granted.add((session_key, tool.owner, tool.name))
            self._changes.notify()
        if answer == "always":
            try:
                await self.remember(tool.rule, "auto")
            except ConfigError as error:
                note = f"{tool.name} is allowed only until the server stops. {error}"
                logger.warning("%s", note)
                return note
        return ""

    async def wait_for_sign_in(
        self, request: PermissionRequest, wait_ready: Callable[[], Awaitable[None]]
    ) -> bool | None:
        """Ask the user to sign in on the page of a call, until its plugin is ready there.

        Args:
            request: The call, which is allowed, and whose tool has not started.
            wait_ready: Returns once the plugin is ready, whether they say so or not.

        Returns:
            Whether the call may be made again; None if the user cannot be asked.

        Raises:
            CallError: Its client has to repeat it with the answer of its user.
        """
        asker = _asker(request)
        if asker is None and not await self.questions.will_be_seen():
            return None
        question = await self._question(request, asker, ("once", "no"), "sign_in")
        if asker is not None and asker.is_immediate:
            return await asker.ask(question) == "once"

        async def continue_once_ready() -> None:
            await wait_ready()
            self.questions.answer(question.id, "once", by="page")

        why = f"Waiting for the user to sign in for {request.tool.name}."
        answered = await self._wait(request, asker, question, why, continue_once_ready)
        return isinstance(answered, tuple) and answered[0] == "once"

    async def _ask(self, request: PermissionRequest, decision: Callable[[], Decision]) -> Permit:
        tool, asker = request.tool, _asker(request)
        if asker is None and not await self.questions.will_be_seen():
            raise self.nobody_to_ask(tool.name, tool.rule)
        session_key = _session_key(request)
        answers: tuple[Answer, ...] = tuple(
            each for each in ANSWERS if each != "session" or session_key is not None
        )
        question = await self._question(request, asker, answers)
        handling = self._handling[question.id] = _Handling()
        try:
            if asker is not None and asker.is_immediate:
                answer, by, place = await asker.ask(question), "client", asker.asked_place
            else:
                answered = await self._wait_allowed(request, asker, question, decision)
                if isinstance(answered, Permit):
                    return answered
                (answer, by), place = answered, question.place
            if answer == "no":
                raise failures.not_allowed(tool.name)
            decided = decision()
            if decided.permission == "off":  # the settings have changed since then
                raise failures.turned_off(tool.name, tool.rule, decided)
            handling.note = await self._handle_answer(request, answer)
        finally:
            del self._handling[question.id]
            handling.done.set()
        return Permit(f"{by}: {answer}", place)

    async def _wait_allowed(
        self,
        request: PermissionRequest,
        asker: Asker | None,
        question: Question,
        decision: Callable[[], Decision],
    ) -> tuple[Answer, str] | Permit:
        """Return the answer and where it was given, or what lets the call run meanwhile."""
        tool = request.tool
        permits: list[Permit] = []
        # It may have been decided while the place of the call was looked up.
        if (permit := self._find_permit(request, decision())) is not None:
            return permit

        async def withdraw_once_gone() -> None:
            self.questions.withdraw(question.id, await request.wait_gone(question.place))

        def handle_change() -> None:
            # Such as an answer about another call, or the user's settings.
            try:
                permit = self._find_permit(request, decision())
            except CallError as error:
                self.questions.withdraw(question.id, error)
            else:
                if permit is not None:
                    permits.append(permit)
                    self.questions.answer(question.id, "once", by="permission")

        unsubscribe = self._changes.subscribe(handle_change)
        try:
            why = f"Waiting for the user to allow {tool.name}."
            answered = await self._wait(request, asker, question, why, withdraw_once_gone)
        finally:
            unsubscribe()
        if answered is None:
            raise failures.nobody_answered(tool.name, tool.rule)
        if isinstance(answered, CallError):
            raise answered
        return permits[0] if answered[1] == "permission" else answered

    async def _question(
        self,
        request: PermissionRequest,
        asker: Asker | None,
        answers: tuple[Answer, ...],
        about: About = "permission",
    ) -> Question:
        tool = request.tool
        return Question(
            secrets.token_hex(8),
            tool.name,
            request.title,
            tool.owner,
            tool.rule,
            arguments_text(request.arguments),
            client=request.client_name,
            place=await request.find_place(),
            answers=answers,
            about=about,
            by_client=asker is not None,
            call_id=request.call_id,
            at=self._clock.now(),
        )

    async def _wait(
        self,
        request: PermissionRequest,
        asker: Asker | None,
        question: Question,
        why: str,
        beside: Callable[[], Coroutine[Any, Any, None]],
    ) -> tuple[Answer, str] | CallError | None:
        """Return what `Questions.ask` returns."""
        answered: tuple[Answer, str] | CallError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._remind, request, why)
            tasks.start_soon(beside)
            if asker is not None:
                tasks.start_soon(self._ask_client, asker, question)
            answered = await self.questions.ask(question)
            tasks.cancel_scope.cancel()
        return answered

    async def _ask_client(self, asker: Asker, question: Question) -> None:
        try:
            answer = await asker.ask(question)
        except CallError as error:
            if not self.questions.can_be_seen:
                self.questions.withdraw(question.id, error)
        else:
            self.questions.answer(question.id, answer, by="client")

    async def _remind(self, request: PermissionRequest, why: str) -> None:
        """Report why the call waits, often enough that its client does not give up."""
        while True:
            request.notify_waiting(why)
            due = anyio.Event()
            alarm = self._clock.set_alarm(self._clock.now() + REMIND_AFTER, due.set)
            try:
                await due.wait()
            finally:
                alarm.cancel()


def _session_key(request: PermissionRequest) -> SessionKey | None:
    return None if request.client is None else request.client.session_key


def _asker(request: PermissionRequest) -> Asker | None:
    """Return what asks the user of a call's client, if it can be asked about this call."""
    asker = None if request.client is None else request.client.asker
    # The client would repeat the whole call that a nested one belongs to.
    return None if asker is not None and asker.is_immediate and request.is_nested else asker
