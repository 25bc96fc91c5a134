"""Derive a tool's schemas from a function's signature."""

import inspect
import logging
import types as builtin_types
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, from_json, to_json

from opentabs_py.core import failures
from opentabs_py.core.text import path_text, rule_text
from opentabs_py.errors import ConfigError
from opentabs_py.python_tools.declare import within_partial
from opentabs_py.python_tools.docstrings import Docstring
from opentabs_py.python_tools.progress import Progress

logger = logging.getLogger(__name__)

CALLBACK_NAME: Final = "progress_callback"
Injected = Literal["progress", "callback"]
_Kind = inspect.Parameter
_NO_SCHEMA = (PydanticUserError, NotImplementedError)
_CALLBACK = Callable[[Any], Awaitable[None]]


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=False)


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Schemas(GenerateJsonSchema):
    """Does not warn about defaults that JSON cannot express; the schema omits them."""

    ignored_warning_kinds = {"non-serializable-default", "skipped-choice"}  # noqa: RUF012

    def encode_default(self, dft: Any) -> Any:
        """Return a default as a JSON value.

        Raises:
            PydanticSerializationError: JSON cannot express it: it contains infinity, NaN or a lone
                surrogate, for example.
        """
        default = super().encode_default(dft)
        try:
            from_json(to_json(default), allow_inf_nan=False)
        except ValueError as error:
            raise PydanticSerializationError(str(error)) from None
        return default


@dataclass(frozen=True, slots=True)
class Signature:
    """How to call a tool.

    Attributes:
        input_schema: JSON Schema of the arguments that clients send.
        output_schema: JSON Schema of its value, if that is an object; else None.
        injected: The parameters that the server fills in, and with what.
    """

    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    injected: Mapping[str, Injected]
    _model: type[BaseModel]
    _names: Mapping[str, str]  # of the parameters, by the model's fields
    _filled: frozenset[str]  # fields whose default is within the function's own `Field(...)`
    _positional: Mapping[str, Any]  # the defaults of positional-only parameters, by name
    _bound: frozenset[str]  # parameters that no client can set, though it can add any arguments

    def convert(self, tool: str, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and the named arguments for calling the function.

        Raises:
            CallRefusedError: The arguments do not match its annotations.
        """
        try:
            model = self._model.model_validate(arguments)
        except ValidationError as error:
            violations = [
                (path_text(each["loc"]), rule_text(each["msg"])) for each in error.errors()
            ]
            raise failures.invalid_arguments(tool, violations) from None
        more: dict[str, Any] = model.model_extra or {}
        if more and not self._bound.isdisjoint(more):
            refused = [(name, "there is no such argument") for name in more if name in self._bound]
            raise failures.invalid_arguments(tool, refused)
        passed = model.model_fields_set | self._filled
        given = {
            name: getattr(model, field) for field, name in self._names.items() if field in passed
        }
        positional = self._pop_positional(given) if self._positional else []
        return positional, {**given, **more}

    def _pop_positional(self, given: dict[str, Any]) -> list[Any]:
        """Remove and return the arguments that can only be passed by position.

        One that was left out before another gets its default.
        """
        places = [place for place, name in enumerate(self._positional) if name in given]
        until = max(places, default=-1) + 1  # all following parameters have defaults
        defaults = islice(self._positional.items(), until)
        return [given.pop(name, default) for name, default in defaults]


def read_signature(function: Callable[..., Any], name: str, docstring: Docstring) -> Signature:
    """Read a function's signature.

    Args:
        function: Any function; parameters that a partial binds by name are left out.
        name: The tool's name.
        docstring: Describes its arguments.

    Raises:
        ConfigError: It cannot be a tool as it is; the text says why.
    """
    parameters = inspect.signature(function).parameters
    hints = _hints(function, name)
    bound = _bound_by_name(function)
    inner = innermost(function)
    injected: dict[str, Injected] = {}
    names: dict[str, str] = {}
    fields: dict[str, Any] = {}
    filled: set[str] = set()
    positional: dict[str, Any] = {}
    base: type[BaseModel] = _Closed
    not_open: set[str] = set()
    for parameter in parameters.values():
        hint = hints.get(parameter.name, Any)
        what = _injection(parameter.name, hint)
        if parameter.name in bound or parameter.kind is _Kind.VAR_POSITIONAL:
            continue
        if parameter.kind is _Kind.VAR_KEYWORD:
            base = _Open
            not_open = bound | _nameable(inner)
        elif what is not None:
            if parameter.kind is _Kind.POSITIONAL_ONLY:
                raise ConfigError(
                    f"The tool {name} has the positional-only parameter {parameter.name!r}, but "
                    "the server passes it by name. Remove the `/` after it."
                )
            injected[parameter.name] = what
        else:
            field = f"p{len(fields)}"  # a name that cannot clash with pydantic's own
            names[field] = parameter.name
            fields[field] = _field(parameter, hint, docstring)
            if isinstance(parameter.default, FieldInfo):
                filled.add(field)
            if parameter.kind is _Kind.POSITIONAL_ONLY:
                positional[parameter.name] = parameter.default
    try:
        model, schema = _model(name, base, fields)
    except _NO_SCHEMA as error:
        which = _without_schema(base, fields)
        kind = inspect.formatannotation(fields[which][0])
        raise ConfigError(
            f"The parameter {names[which]!r} of the tool {name} cannot come from JSON: its type is "
            f"{kind}. {_advice(error) or 'Use a JSON-compatible type'}, or bind it with "
            "functools.partial."
        ) from error
    schema = _without_titles(schema)
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return Signature(
        input_schema=schema,
        output_schema=_output_schema(inner, name, hints.get("return", Any)),
        injected=injected,
        _model=model,
        _names=names,
        _filled=frozenset(filled),
        _positional=positional,
        _bound=frozenset(not_open.difference(names.values())),
    )


def _bound_by_name(function: Any) -> set[str]:
    """Return the names that a partial has bound, and those within it."""
    names: set[str] = set()
    while isinstance(function, partial):
        names |= cast(Any, function).keywords.keys()
        function = cast(Any, function).func
    return names


def _nameable(function: Callable[..., Any]) -> set[str]:
    """Return the parameters that can be passed by name, with those that are bound."""
    kinds = (_Kind.POSITIONAL_OR_KEYWORD, _Kind.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    return {each.name for each in parameters if each.kind in kinds}


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside a partial, a method, or a callable object."""
    function = within_partial(function)
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        function = type(function).__call__
    inner: Callable[..., Any] = inspect.unwrap(getattr(function, "__func__", function))
    return inner


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(innermost(function), include_extras=True)
    except Exception as error:
        raise ConfigError(
            f"Cannot resolve the annotations of the tool {name}: {error}. The names in them must "
            "exist at run time, in the tool's module."
        ) from error


def _injection(name: str, hint: Any) -> Injected | None:
    options = _options(hint)
    if Progress in options:
        return "progress"
    if name == CALLBACK_NAME or any(option == _CALLBACK for option in options):
        return "callback"
    return None


def _options(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type alone."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return get_args(hint) if get_origin(hint) in (Union, builtin_types.UnionType) else (hint,)


def _field(parameter: inspect.Parameter, hint: Any, docstring: Docstring) -> tuple[Any, Any]:
    """Return the type and the definition of a parameter's field."""
    default: dict[str, Any] = {}
    if isinstance(parameter.default, FieldInfo):
        hint = Annotated[hint, parameter.default]  # which says whether it has a default
    else:
        default["default"] = ... if parameter.default is _Kind.empty else parameter.default
    described = any(
        isinstance(each, FieldInfo) and each.description is not None for each in get_args(hint)[1:]
    )
    description = None if described else docstring.arguments.get(parameter.name)
    options: dict[str, Any] = {} if description is None else {"description": description}
    return hint, Field(alias=parameter.name, **default, **options)


def _output_schema(function: Callable[..., Any], name: str, hint: Any) -> dict[str, Any] | None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return None
    if hint is Any or any(_is_of_mcp(option) for option in _options(hint)):
        return None
    try:
        schema = TypeAdapter(hint).json_schema(mode="serialization", schema_generator=_Schemas)
    except Exception as error:  # noqa: BLE001
        if advice := _advice(error):
            logger.warning("The tool %s has no output schema. %s.", name, advice)
        return None  # the tool promises nothing; its value may be serializable anyway
    root = schema
    if isinstance(reference := schema.get("$ref"), str):
        root = schema["$defs"][reference.rpartition("/")[2]]
    if root.get("type") != "object":
        return None
    return {**_without_titles(schema), "type": "object"}


def _advice(error: Exception) -> str | None:
    """Return what makes a type usable that pydantic has refused, if anything does."""
    if isinstance(error, PydanticUserError) and error.code == "typed-dict-version":
        return "Use typing_extensions.TypedDict instead of typing.TypedDict before Python 3.12"
    return None


def _is_of_mcp(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is not None:
        return any(_is_of_mcp(each) for each in get_args(hint))
    return getattr(hint, "__module__", "").partition(".")[0] in ("mcp", "mcp_types")


def _without_titles(schema: Any) -> Any:
    """Return a schema without titles, which repeat the names; keep properties named "title"."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in cast(Sequence[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    clean: dict[str, Any] = {}
    for key, value in cast(dict[str, Any], schema).items():
        if key in ("properties", "$defs", "patternProperties") and isinstance(value, dict):
            parts = cast(dict[str, Any], value)
            clean[key] = {name: _without_titles(part) for name, part in parts.items()}
        elif key in ("default", "const", "enum", "examples"):
            clean[key] = value
        elif not (key == "title" and isinstance(value, str)):
            clean[key] = _without_titles(value)
    return clean


def _model(
    name: str, base: type[BaseModel], fields: Mapping[str, Any]
) -> tuple[type[BaseModel], dict[str, Any]]:
    model = create_model(name, __base__=base, **fields)
    if len(model.model_fields) < len(fields):
        raise NotImplementedError("a ClassVar is not a field")
    return model, model.model_json_schema(schema_generator=_Schemas)


def _without_schema(base: type[BaseModel], fields: Mapping[str, Any]) -> str:
    """Return the first field whose type has no JSON schema."""
    for field, definition in fields.items():
        try:
            _model("tool", base, {field: definition})
        except _NO_SCHEMA:
            return field
    return next(iter(fields))
