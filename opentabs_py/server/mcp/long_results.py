"""Cut long results for models, and keep them whole for a while, as resources."""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from mcp import types
from pydantic import JsonValue
from pydantic_core import from_json

from opentabs_py.core.cutting import LeftOut, as_text, cut_value, describe_left_out
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.tokens import estimate_tokens, is_longer

KEPT: Final = 100  # results
KEPT_BYTES: Final = 64 * 1024 * 1024  # of all of them
WHOLE_META_KEY: Final = "opentabs/whole"
RESULT_ADDRESS: Final = "opentabs://result/"
_NOTICE: Final = 100  # tokens; about what the longest notice costs


@dataclass(frozen=True, slots=True)
class LongResult:
    """A result that was cut.

    Attributes:
        uri: Its URI as a resource.
        tool: The name of its tool.
        session_key: The key of the session of the client that made the call; None if it has none,
            when knowing the URI grants access.
        text: All of it, in UTF-8.
        mime_type: The type of the text.
    """

    uri: str
    tool: str
    session_key: SessionKey | None
    text: bytes
    mime_type: str


class LongResults:
    """Cuts results that are longer than a model should read.

    What remains has no structured content: some clients show their model that instead of the text,
    and a program would take it for the whole. So no tool may be listed with an output schema, for
    which clients require it.

    Args:
        limit: Tokens of a result.
        kept: How many whole results are kept, the latest.
        kept_bytes: How long these may be together.
    """

    def __init__(self, limit: int, *, kept: int = KEPT, kept_bytes: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._kept = kept
        self._kept_bytes = kept_bytes
        self._results: dict[str, LongResult] = {}

    def shorten(
        self, tool: str, value: JsonValue, session_key: SessionKey | None
    ) -> types.CallToolResult | None:
        """Return a tool's value as a result that is cut; None if it is short enough.

        Args:
            tool: The tool's name.
            value: Its value.
            session_key: The key of the session of the client that made the call.
        """
        text = as_text(value)
        if not is_longer(text, self._limit):
            return None
        shown, left_out = self._cut(text, value, self._limit - _NOTICE)
        whole = self._keep(tool, text, session_key, is_json=not isinstance(value, str))
        content: list[types.ContentBlock] = [types.TextContent(text=shown)]
        return self._finish(content, left_out, whole)

    def shorten_content(
        self, tool: str, result: types.CallToolResult, session_key: SessionKey | None
    ) -> types.CallToolResult:
        """Return a result without what is too long of its texts and its structure."""
        texts = "\n\n".join(
            each.text for each in result.content if isinstance(each, types.TextContent)
        )
        if is_longer(texts, self._limit):
            whole = self._keep(tool, texts, session_key, is_json=False)
        elif is_longer(structure := as_text(result.structured_content), self._limit):
            whole = self._keep(tool, structure, session_key, is_json=True)
        else:
            return result
        left = self._limit - _NOTICE
        content: list[types.ContentBlock] = []
        left_out: list[LeftOut] = []
        for block in result.content:
            if isinstance(block, types.TextContent):
                shown, missing = self._cut(block.text, block.text, left)
                left = max(left - estimate_tokens(shown), 0)
                left_out += missing
                content.append(block.model_copy(update={"text": shown}))
            else:
                content.append(block)
        cut = self._finish(content, left_out, whole)
        meta = {**(result.meta or {}), **(cut.meta or {})}
        return cut.model_copy(update={"is_error": result.is_error, "meta": meta or None})

    def of(self, session_key: SessionKey | None) -> Sequence[LongResult]:
        """Return the results kept for a client's session; none without one."""
        if session_key is None:
            return []
        return [each for each in self._results.values() if each.session_key == session_key]

    def find(self, uri: str, session_key: SessionKey | None) -> LongResult:
        """Return a result kept for a client.

        Raises:
            LookupError: There is none at that URI, or not for that client.
        """
        found = self._results.get(uri)
        if found is None or found.session_key not in (None, session_key):
            raise LookupError(
                f"There is no result at {uri}. The last {self._kept} long results are kept, up to "
                f"{self._kept_bytes / 1024 / 1024:g} MiB; call the tool again."
            )
        return found

    def _cut(self, text: str, value: JsonValue, limit: int) -> tuple[str, Sequence[LeftOut]]:
        if not is_longer(text, limit):
            return text, ()
        if isinstance(value, str) and value[:1] in ("{", "["):
            with suppress(ValueError):  # it may only look like JSON
                value = from_json(value)
        cut = cut_value(value, limit)
        return as_text(cut.value), cut.left_out

    def _keep(
        self, tool: str, text: str, session_key: SessionKey | None, *, is_json: bool
    ) -> LongResult | None:
        """Keep a result, and forget the oldest; return None if it is too long."""
        content = text.encode()
        if len(content) > self._kept_bytes:
            return None
        # Lower case, because some clients lower-case addresses.
        uri = f"{RESULT_ADDRESS}{secrets.token_hex(16)}"
        mime_type = "application/json" if is_json else "text/plain"
        kept = self._results[uri] = LongResult(uri, tool, session_key, content, mime_type)
        while len(self._results) > self._kept or self._size() > self._kept_bytes:
            del self._results[next(iter(self._results))]
        return kept

    def _size(self) -> int:
        return sum(len(each.text) for each in self._results.values())

    def _finish(
        self,
        content: list[types.ContentBlock],
        left_out: Sequence[LeftOut],
        whole: LongResult | None,
    ) -> types.CallToolResult:
        what = describe_left_out(left_out) or "the structured content"
        where = "" if whole is None else f"read the resource {whole.uri} for all, or "
        notice = f"[Cut to {self._limit:,} tokens: {what} left out; {where}call again for less.]"
        meta = None if whole is None else {WHOLE_META_KEY: whole.uri}
        return types.CallToolResult(content=[*content, types.TextContent(text=notice)], _meta=meta)
