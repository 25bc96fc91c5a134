"""The calls of the tools that a recording can replay, with their results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from opentabs_py.core import codes
from opentabs_py.core.recording.exchange import Request
from opentabs_py.core.recording.matching import comparable
from opentabs_py.core.sites.origins import resolve_link
from opentabs_py.generate.html_tools import HtmlTool
from opentabs_py.generate.names import HAS_MORE, MAX_PAGES
from opentabs_py.generate.plan import PlannedTool
from opentabs_py.generate.samples import Sample

Key = tuple[Any, ...]
MOST: Final = 3  # calls of each tool
_CODES: Final = {
    400: codes.VALIDATION_ERROR,
    401: codes.AUTH_ERROR,
    403: codes.AUTH_ERROR,
    404: codes.NOT_FOUND,
    408: codes.TIMEOUT,
    422: codes.VALIDATION_ERROR,
    429: codes.RATE_LIMITED,
}


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call of a tool that the recording answers.

    Attributes:
        tool: The tool's name, without the plugin's.
        arguments: A JSON object.
        value: The result.
        code: The error's code; empty if it succeeds.
        is_stable: Whether the recording answers it in only one way.
        pages: How many pages it reads; 0 if the tool reads none.
    """

    tool: str
    arguments: Mapping[str, Any]
    value: Any = None
    code: str = ""
    is_stable: bool = True
    pages: int = 0


def calls_of(tool: PlannedTool) -> Sequence[AnsweredCall]:
    """Return calls of a tool that its recording answers: stable ones, and one error."""
    responses = _Responses(tool)
    found: dict[str, AnsweredCall] = {}
    called: set[Key] = set()
    for sample in tool.operation.works:
        if (key := comparable(sample.request).key) in called or responses.begin_with_error(key):
            continue
        if tool.pagination:
            call = _pages_from(tool, sample, responses)
        else:
            call = _call(tool, sample, responses)
        if call is not None:
            called.add(key)
            found.setdefault(repr(sorted(call.arguments.items())), call)
    stable = [call for call in found.values() if call.is_stable]
    chosen = stable[:MOST] or [*found.values()][:1]
    return [*chosen, *_error(tool, found, responses)]


class _Responses:
    """The responses to a tool's requests.

    Args:
        tool: The tool.
    """

    def __init__(self, tool: PlannedTool) -> None:
        known: dict[Key, tuple[int, Any]] = {}
        self._several: set[Key] = set()
        self._failed_first: set[Key] = set()
        for sample in tool.operation.samples:
            key, response = comparable(sample.request).key, (sample.status, _result(tool, sample))
            if key not in known and not sample.works:
                self._failed_first.add(key)
            if known.setdefault(key, response) != response:
                self._several.add(key)

    def are_alike(self, request: Request) -> bool:
        """Return whether all requests that a replay takes for this one have the same response."""
        return comparable(request).key not in self._several

    def begin_with_error(self, key: Key) -> bool:
        """Return whether a replay answers a request with an error the first time."""
        return key in self._failed_first


def _call(tool: PlannedTool, sample: Sample, responses: _Responses) -> AnsweredCall | None:
    if not tool.answers(sample):
        return None
    stable = responses.are_alike(sample.request)
    arguments = tool.inputs.of(sample)
    if not (isinstance(tool, HtmlTool) and tool.has_next):
        return AnsweredCall(tool.name, arguments, tool.value_of(sample), is_stable=stable)
    value, pages = tool.read_on(sample)
    if value[HAS_MORE]:
        arguments[MAX_PAGES] = pages
    return AnsweredCall(tool.name, arguments, value, is_stable=stable, pages=pages)


def _error(
    tool: PlannedTool, known: Mapping[str, AnsweredCall], responses: _Responses
) -> Iterator[AnsweredCall]:
    if not tool.is_read or tool.operation.style not in ("rest", "page"):
        return
    for sample in tool.operation.samples:
        arguments = tool.inputs.of(sample)
        if (
            sample.status >= 400
            and repr(sorted(arguments.items())) not in known
            and responses.are_alike(sample.request)
            and tool.inputs.can_send(sample)
            and (tool.pagination is None or tool.pagination.is_first(sample))
        ):
            yield AnsweredCall(
                tool.name, arguments, code=_CODES.get(sample.status, codes.INTERNAL_ERROR)
            )
            return


def _pages_from(tool: PlannedTool, first: Sample, responses: _Responses) -> AnsweredCall | None:
    """Return the call that begins with a page and reads on as far as the recording does."""
    pagination = tool.pagination
    if pagination is None or not first.value:
        return None
    is_link = pagination.kind == "link"
    if not is_link and not pagination.is_first(first):
        return None
    if is_link and first not in pagination.first_pages(tool.operation.answered):
        return None
    arguments = tool.inputs.of(first)
    items: list[Any] = []
    sample, stable = first, True
    read: set[int] = set()
    while True:
        read.add(id(sample))
        pages = len(read)
        stable = stable and responses.are_alike(sample.request)
        items += pagination.items_of(sample)
        following = pagination.following(pages, len(items), sample)
        after = _sample_at(tool, arguments, following) if following else None
        if after is None or id(after) in read:  # the second leads in a circle
            break
        sample = after
    if following:
        arguments = {**arguments, MAX_PAGES: pages}
    value = {tool.wrap: items, HAS_MORE: bool(following)}
    return AnsweredCall(tool.name, arguments, value, is_stable=stable, pages=pages)


def _sample_at(
    tool: PlannedTool, arguments: Mapping[str, Any], place: tuple[Any, ...]
) -> Sample | None:
    pagination = tool.pagination
    assert pagination is not None
    for sample in tool.operation.answered:
        if pagination.kind == "link":
            if sample.request.url == resolve_link(sample.request.url, str(place[0])):
                return sample
        elif (
            tuple(map(str, pagination.place(sample))) == tuple(map(str, place))
            and tool.inputs.of(sample) == arguments
        ):
            return sample
    return None


def _result(tool: PlannedTool, sample: Sample) -> Any:
    return tool.value_of(sample) if sample.works and tool.answers(sample) else sample.value
