"""Remove the secrets from a recording before it is written.

The same secret is replaced by the same text everywhere, in whatever encoding it appears, so that a
token which a page reads from one response is still the one that it sends with its next request.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from opentabs_py.core.encodings import encodings_of
from opentabs_py.core.recording.exchange import (
    Event,
    Exchange,
    Frame,
    Headers,
    RecordedCall,
    RecordedSocket,
    Recording,
    Request,
    Response,
    Scrubbed,
    reads_as_text,
)
from opentabs_py.core.recording.gzipped import unzipped
from opentabs_py.core.recording.replacements import choose_replacements
from opentabs_py.core.recording.scrub_patterns import WORDS, AnyOf, continues, values_of
from opentabs_py.core.recording.scrub_rules import ScrubRules
from opentabs_py.core.recording.secrets.found import FoundSecret
from opentabs_py.core.recording.secrets.search import find_secrets
from opentabs_py.core.recording.storage import without_other_sites


def scrub(
    recording: Recording,
    rules: ScrubRules | None = None,
    *,
    earlier: Sequence[Scrubbed] = (),
    step: Callable[[], object] = lambda: None,
) -> Recording:
    """Return a recording without its secrets, which says in `scrubbed` what they were.

    What the browser keeps for sites that do not occur in the recording is left out.

    Args:
        recording: A recording as it was made.
        rules: What is secret besides.
        earlier: What was scrubbed from the recording that this one will be added to.
        step: Called twice for each exchange and WebSocket.
    """
    recording = without_other_sites(recording)
    replacements = {each.replacement for each in earlier}
    secrets = find_secrets(recording, rules or ScrubRules(), replacements=replacements, step=step)
    return _Scrubber(secrets, earlier).scrub(recording, step)


@dataclass(frozen=True, slots=True)
class _Form:
    """One encoding of a secret."""

    secret: FoundSecret
    replacement: str


class _Scrubber:
    """Replaces secrets.

    Args:
        secrets: What to replace.
        earlier: What was replaced before, whose replacements are not used again.
    """

    def __init__(self, secrets: Iterable[FoundSecret], earlier: Sequence[Scrubbed]) -> None:
        self._forms: dict[str, _Form] = {}
        self._held: dict[tuple[str, str], _Form] = {}
        self._counts: Counter[str] = Counter()
        self._secrets: list[FoundSecret] = sorted(secrets, key=lambda each: -len(each.text))
        self._replacements = choose_replacements(self._secrets, earlier)
        for each in self._secrets:
            new = self._replacements[each.text]
            for encode in encodings_of(each.text):
                form = _Form(each, encode(new))
                if each.is_distinct:
                    self._forms.setdefault(encode(each.text), form)
                else:
                    for holder in each.holders:
                        self._held.setdefault((encode(holder).lower(), encode(each.text)), form)
        self._any_of = AnyOf(self._forms)
        self._values = values_of({name for name, _ in self._held})
        self._words = {word for _, word in self._held}

    def scrub(self, recording: Recording, step: Callable[[], object]) -> Recording:
        """Return a recording without the secrets."""
        exchanges: list[Exchange] = []
        for each in recording.exchanges:
            exchanges.append(self._exchange(each))
            step()
        sockets: list[RecordedSocket] = []
        for socket in recording.sockets:
            sockets.append(self._socket(socket))
            step()
        return replace(
            recording,
            url=self.text(recording.url),
            exchanges=exchanges,
            sockets=sockets,
            calls=[self._call(each) for each in recording.calls],
            storage_state=self._value(recording.storage_state),
            storage_at_end=self._value(recording.storage_at_end),
            scrubbed=[
                Scrubbed(each.kind, self.text(each.where), self._replacements[each.text], count)
                for each in self._secrets
                if (count := self._counts[each.text])
            ],
        )

    # --- parts ---

    def _exchange(self, exchange: Exchange) -> Exchange:
        request, response = exchange.request, exchange.response
        return replace(
            exchange,
            request=Request(
                request.method,
                self.text(request.url),
                self._headers(request.headers),
                self._body(request.body, request.mime),
                request.kind,
            ),
            response=None if response is None else self._response(response),
        )

    def _response(self, response: Response) -> Response:
        body = response.body
        return Response(
            response.status,
            self.text(response.status_text),
            self._headers(response.headers),
            None if body is None else self._body(body, response.mime),
            [
                Event(each.at, *map(self.text, (each.data, each.name, each.last_id)))
                for each in response.events
            ],
        )

    def _headers(self, headers: Headers) -> Headers:
        scrubbed: list[tuple[str, str]] = []
        for name, value in headers:
            form = self._held.get((name.lower(), value.strip()))
            scrubbed.append((name, self.text(value) if form is None else self._use(form)))
        return scrubbed

    def _body(self, body: bytes, mime: str) -> bytes:
        plain = unzipped(body)
        if reads_as_text(plain, mime):
            # What is not UTF-8 comes through unchanged.
            text = plain.decode("utf-8", "surrogateescape")
            scrubbed = self.text(text).encode("utf-8", "surrogateescape")
        else:
            scrubbed = self._bytes(plain)
        if scrubbed == plain:
            return body
        return scrubbed if plain is body else gzip.compress(scrubbed, mtime=0)

    def _bytes(self, body: bytes) -> bytes:
        """Replace secrets by as many bytes, for what follows may be found by its place."""
        for each in self._secrets:
            secret = each.text.encode("utf-8", "surrogatepass")
            if each.is_distinct and len(secret) >= 6 and secret in body:
                self._counts[each.text] += body.count(secret)
                new = self._replacements[each.text].encode()
                body = body.replace(secret, (new * len(secret))[: len(secret)])
        return body

    def _socket(self, socket: RecordedSocket) -> RecordedSocket:
        frames = [
            Frame(
                frame.at,
                frame.is_sent,
                self.text(frame.data) if isinstance(frame.data, str) else self._bytes(frame.data),
            )
            for frame in socket.frames
        ]
        return replace(socket, url=self.text(socket.url), frames=frames)

    def _call(self, call: RecordedCall) -> RecordedCall:
        return replace(
            call,
            arguments=self._value(call.arguments),
            value=self._value(call.value),
            error=self._value(call.error),
        )

    def _value(self, value: Any) -> Any:
        """Replace secrets in a JSON value."""
        if value is None:
            return None
        text = self.text(json.dumps(value, ensure_ascii=False))
        try:
            return json.loads(text)
        except ValueError:  # part of the syntax looks like a secret
            return self._part(value, "")

    def _part(self, value: Any, holder: str) -> Any:
        """Replace secrets in each string and number of a JSON value by itself.

        Args:
            value: The value.
            holder: The name of what holds it, which is also that of what is in a list.
        """
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            return {self.text(name): self._part(each, name) for name, each in members.items()}
        if isinstance(value, list):
            return [self._part(each, holder) for each in cast("Sequence[Any]", value)]
        if type(value) not in (str, int):
            return value
        text = str(value)
        form = self._held.get((holder.lower(), text))
        return type(value)(self.text(text) if form is None else self._use(form))

    # --- texts ---

    def text(self, text: str) -> str:
        """Replace the secrets in a string."""
        if any(word in text for word in self._words):  # which is rare, and much faster to tell
            for each in self._values:
                text = each.sub(self._replace_held, text)
        return self._any_of.replace(text, self._replace)

    def _replace(self, around: str, start: int, end: int) -> str:
        text = around[start:end]
        form = self._forms[text]
        if form.secret.kind == "name" or text.isdigit():
            # Part of a longer word or number, it is not that name or number.
            is_part = (start > 0 and text[0].isalnum() and continues(around, start - 1)) or (
                end < len(around) and text[-1].isalnum() and around[end].isalnum()
            )
            if is_part:
                return text
        return self._use(form)

    def _replace_held(self, found: "re.Match[str]") -> str:
        name = found["name"].lower()

        def replace_word(word: "re.Match[str]") -> str:
            form = self._held.get((name, word[0]))
            return word[0] if form is None else self._use(form)

        return found["before"] + WORDS.sub(replace_word, found["value"])

    def _use(self, form: _Form) -> str:
        self._counts[form.secret.text] += 1
        return form.replacement
