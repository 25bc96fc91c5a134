"""Derive a tool's arguments from what requests had in common and where they differed."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from opentabs_py.core.recording.matching import is_volatile
from opentabs_py.core.shapes.shape import Shape, shape_of
from opentabs_py.generate.flows import NAMES_THINGS, Flows, ValueSource
from opentabs_py.generate.names import MAX_PAGES, camel, is_identifier, singular, unique, words_of
from opentabs_py.generate.operations import Operation
from opentabs_py.generate.pagination import Pagination
from opentabs_py.generate.samples import Sample

Place = Literal["path", "query", "payload", "body"]
TimeUnit = Literal["ms", "s"]

_INTEGER: Final = re.compile(r"-?(0|[1-9]\d{0,14})")
_TECHNICAL: Final = re.compile(
    r"v|ver|version|client.*|platform|build|hash|sdk|api_?key|key|token|format|callback|_.*|op"
    r"|utf8|commit|authenticity_?token|csrf.*|__.*",
    re.IGNORECASE,
)
_NEAR: Final = 24 * 60 * 60.0  # s; jQuery counts from when the page was opened, perhaps yesterday
_SEARCH: Final = re.compile(r"q|query|search|term|text|keywords?|filter|s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Input:
    """An argument of a tool.

    Attributes:
        name: The argument's name.
        place: Where it goes in the request; `body` is the whole of it.
        key: The index of the path's segment, or the name of the member.
        shape: What its values look like.
        is_required: Whether calls must have it.
        default: What is sent if a call does not have it, in a tuple; empty if nothing is.
        source: The response that its values come from.
        choices: The only values it can have, or the items of it if it is an array, if they are
            known.
        label: What the site calls it, if it says so.
    """

    name: str
    place: Place
    key: int | str
    shape: Shape
    is_required: bool = True
    default: tuple[Any, ...] = ()
    source: ValueSource | None = None
    choices: Sequence[str] = ()
    label: str = ""


@dataclass(slots=True)
class Inputs:
    """What goes into an operation's requests.

    Attributes:
        arguments: What differs, or might.
        query: Members of the query that are always the same, or the current time.
        payload: The same of the payload.
        tokens: The names of the tokens, in `Auth`, that members of these two are.
        times: The members of these two that are the current time, and its unit.
    """

    arguments: list[Input] = field(default_factory=list[Input])
    query: dict[str, Any] = field(default_factory=dict[str, Any])
    payload: dict[str, Any] = field(default_factory=dict[str, Any])
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    times: dict[str, TimeUnit] = field(default_factory=dict[str, TimeUnit])

    def can_send(self, sample: Sample) -> bool:
        """Return whether a tool can send the same request."""
        for each in self.arguments:
            raw = raw_value(sample, each.place, each.key)
            if not raw and (each.is_required or each.default):
                return False
            if raw and not _is_typed(each, _typed(each, raw[0])):
                return False
        return True

    @property
    def taken(self) -> Collection[str]:
        """The names that a further argument cannot have.

        A trailing underscore tells the variable of an argument from others, so no two names may
        differ in one only.
        """
        names = [each.name for each in self.arguments]
        return {MAX_PAGES, *(n for each in names for n in (each, f"{each}_", each.rstrip("_")))}

    def of(self, sample: Sample) -> dict[str, Any]:
        """Return the arguments with which a tool sends the same request, if it can."""
        found: dict[str, Any] = {}
        for each in self.arguments:
            raw = raw_value(sample, each.place, each.key)
            if not raw:
                continue
            value = _typed(each, raw[0])
            if not each.default or each.default[0] != value:
                found[each.name] = value
        return found


def inputs_of(
    operation: Operation,
    flows: Flows,
    pagination: Pagination | None,
    replaced: Collection[str],
) -> Inputs:
    """Return what goes into an operation's requests.

    Args:
        operation: The operation.
        flows: Where ids come from.
        pagination: What the tool sends by itself.
        replaced: What the recording has in place of secrets, which are not defaults.
    """
    inputs = Inputs()
    samples = operation.works or operation.samples
    if pagination is not None:
        samples = pagination.first_pages(samples) or samples
    is_read = operation.is_read  # it reads the bodies of the requests
    for place, key in _places(samples, operation):
        if pagination is not None and (place == "payload", key) == (
            pagination.in_payload,
            pagination.member,
        ):
            continue
        _add(inputs, place, key, samples, operation, flows, replaced, is_read=is_read)
    return inputs


def raw_value(sample: Sample, place: Place, key: int | str) -> tuple[Any, ...]:
    """Return what a request has at a place, in a tuple; empty if it has nothing there."""
    if place == "path":
        return (sample.path[cast("int", key)],)
    if place == "body":
        return sample.other
    if place == "payload":
        payload = sample.payload or {}
        return (payload[cast("str", key)],) if key in payload else ()
    values = sample.query.get(cast("str", key), ())
    return (values[0] if len(values) == 1 else list(values),) if values else ()


def _places(samples: Sequence[Sample], operation: Operation) -> Sequence[tuple[Place, int | str]]:
    found: dict[tuple[Place, int | str], None] = {}
    for index, segment in enumerate(operation.path):
        if segment is None:
            found["path", index] = None
    for sample in samples:
        if not (sample.style == "graphql" and sample.request.method == "GET"):
            found.update({("query", name): None for name in sample.query})
        found.update({("payload", name): None for name in sample.payload or {}})
        if sample.other:
            found["body", ""] = None
    return [*found]


def _add(
    inputs: Inputs,
    place: Place,
    key: int | str,
    samples: Sequence[Sample],
    operation: Operation,
    flows: Flows,
    replaced: Collection[str],
    *,
    is_read: bool,
) -> None:
    found = [raw_value(sample, place, key) for sample in samples]
    raw = [each[0] for each in found if each]
    is_text = place in ("path", "query") or all(each.is_form for each in samples)
    sent = zip(found, samples, strict=True)
    source = _source([(each[0], sample) for each, sample in sent if each], flows)
    constants = inputs.query if place == "query" else inputs.payload
    if place in ("query", "payload") and is_volatile(str(key)) and source is None and all(found):
        unit = _time_unit(raw, samples)
        if unit is not None:
            constants[str(key)] = raw[0]
            inputs.times[str(key)] = unit
            return
    values = _parsed(raw, source) if is_text else raw
    is_always = all(found)
    is_constant = is_always and all(value == values[0] for value in values)
    is_secret = any(isinstance(value, str) and value in replaced for value in values)
    is_technical = place in ("query", "payload") and _TECHNICAL.fullmatch(str(key))
    if is_technical and is_constant and not source:
        constants[str(key)] = values[0]
        return
    has_default = (
        is_constant
        and place in ("query", "payload")
        and source is None
        and not is_secret
        and not (_SEARCH.fullmatch(str(key)) or NAMES_THINGS.fullmatch(str(key)))
        and (
            is_read
            or place == "query"
            or isinstance(values[0], bool)
            or values[0] in (None, [], {}, "")
        )
    )
    inputs.arguments.append(
        Input(
            unique(_name(place, key, operation, source), inputs.taken),
            place,
            key,
            shape_of(*values),
            is_required=is_always and not has_default,
            default=(values[0],) if has_default else (),
            source=source,
        )
    )


def _time_unit(values: Sequence[Any], samples: Sequence[Sample]) -> TimeUnit | None:
    """Return the unit of values that are the times of their requests; None if they are not."""
    units: Sequence[tuple[TimeUnit, int]] = (("ms", 1000), ("s", 1))
    for unit, per_second in units:
        if all(
            isinstance(value, int | str)
            and _INTEGER.fullmatch(str(value))
            and abs(int(value) / per_second - sample.exchange.started) <= _NEAR
            for value, sample in zip(values, samples, strict=True)
        ):
            return unit
    return None


def _source(sent: Sequence[tuple[Any, Sample]], flows: Flows) -> ValueSource | None:
    """Return the response that one of the values comes from, each sent by a request."""
    for value, sample in sent:
        is_plain = isinstance(value, str | int) and not isinstance(value, bool)
        source = flows.source(str(value), other_than=sample) if is_plain else None
        if source is not None and len(str(value)) > 1:
            return source
    return None


def _parsed(values: Sequence[Any], source: ValueSource | None) -> Sequence[Any]:
    """Return strings from URLs and forms as integers or booleans, if all of them are such."""
    lists = [_as_list(value) for value in values]
    texts = [str(each) for some in lists for each in some]
    is_text = source is not None and isinstance(source.value, str)
    if not is_text and texts and all(map(_INTEGER.fullmatch, texts)):
        lists = [[int(each) for each in some] for some in lists]
    elif texts and all(each in ("true", "false") for each in texts):
        lists = [[each == "true" for each in some] for some in lists]
    if any(isinstance(value, list) for value in values):
        return lists
    return [some[0] for some in lists]


def _typed(argument: Input, value: Any) -> Any:
    """Return the value of an argument that a request has as a string."""
    kinds = argument.shape.kinds
    if "array" in kinds:
        items = argument.shape.items
        is_number = items is not None and "number" in items.kinds
        return [int(each) if is_number and is_integer(each) else each for each in _as_list(value)]
    if "string" not in kinds:
        if "number" in kinds and is_integer(value):
            return int(value)
        if "boolean" in kinds and value in ("true", "false"):
            return value == "true"
    return value


def _is_typed(argument: Input, value: Any) -> bool:
    """Return whether a value that a request has as a string was read as an argument's type."""
    shape = argument.shape.items if isinstance(value, list) else argument.shape
    if shape is None or not shape.kinds or "string" in shape.kinds:
        return True
    return not any(isinstance(each, str) for each in _as_list(value))


def is_integer(value: Any) -> bool:
    """Return whether a value is a string that an integer is written as, without a zero before."""
    return isinstance(value, str) and _INTEGER.fullmatch(value) is not None


def _as_list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        return [value]
    return cast("Sequence[Any]", value)


def _name(place: Place, key: int | str, operation: Operation, source: ValueSource | None) -> str:
    if place == "body":
        return "body"
    if place != "path":
        return str(key) if is_identifier(str(key)) else camel(str(key))
    before = [each for each in operation.path[: cast("int", key)] if each]
    if not before:
        return camel(source.name) if source is not None else "id"
    last = words_of(source.name)[-1] if source is not None else "id"
    return camel(singular(before[-1]), last)
