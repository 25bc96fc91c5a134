"""How a function's signature and docstring describe its tool."""

import inspect
import json
import math
import sys
import typing
from collections.abc import AsyncGenerator
from functools import partial, partialmethod
from typing import Annotated, Any, ClassVar, Literal, cast

import pytest
from mcp.types import TextContent
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import opentabs_py
from opentabs_py import Module, Progress, skill, tool
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.listing import Listing
from opentabs_py.core.consent import decide
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugin_names import OURSELVES
from opentabs_py.errors import ConfigError
from opentabs_py.python_tools.collection import PythonTools
from opentabs_py.python_tools.docstrings import Docstring, parse_docstring
from opentabs_py.python_tools.python_tool import PythonTool
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.session.session import Server


def served(function: Any) -> PythonTool:
    return PythonTool(function, ToolHost(AlarmClock()))


def listing(function: Any) -> Listing:
    return served(function).listing


class Place(BaseModel):
    """A place."""

    title: str
    near: "Place | None" = None


class Found(TypedDict):
    count: int


def in_module(module: str, name: str) -> Any:
    """Return a tool of this name, defined in this module."""

    def function() -> None:
        """Do nothing."""

    function.__module__, function.__name__ = module, name
    return function


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        (("a", "b"), ("a", "a_b"), "a.b"),
        (("a", "a_b"), ("a", "a_a_b"), "a.a_b"),
        (("a", "x.b"), ("a.x", "b"), "a.x.b"),
    ],
)
def test_two_tools_that_one_rule_would_name_are_an_error(
    one: tuple[str, str], other: tuple[str, str], rule: str
) -> None:
    functions = [in_module(*one), in_module(*other)]
    for given in (functions, functions[::-1]):
        with pytest.raises(ConfigError) as caught:
            PythonTools(given, ToolHost(AlarmClock()))
        said = str(caught.value)
        assert said.startswith(f'The permission "{rule}" would mean ')
        for module, name in (one, other):
            assert f"the tool {name} of the module {module}" in said


def test_tools_of_one_name_in_two_words_have_rules_of_their_own() -> None:
    functions = [in_module("a", "x_b"), in_module("a_x", "b")]
    tools = PythonTools(functions, ToolHost(AlarmClock())).tools
    assert [each.listing.gated("named").rule for each in tools] == ["a.x_b", "a_x.b"]


@pytest.mark.parametrize("name", ["b", "a_b"])
def test_a_tool_whose_rule_would_also_name_a_module_is_an_error(name: str) -> None:
    functions = [in_module("a", name), in_module("a.b", "c")]
    for given in (functions, functions[::-1]):
        with pytest.raises(ConfigError, match=r"\"a.b\" would mean .* all tools of the module a.b"):
            PythonTools(given, ToolHost(AlarmClock()))


def test_a_module_may_be_in_another_one_with_tools() -> None:
    functions = [in_module("a", "c"), in_module("a.b", "d"), in_module("a.b", "b")]
    assert len(PythonTools(functions, ToolHost(AlarmClock())).tools) == 3


def test_the_schema_has_types_defaults_and_descriptions_and_no_titles() -> None:
    def search(
        query: str,
        place: Place,
        how: Literal["fast", "well"] = "fast",
        most: Annotated[int, Field(ge=1, description="From Field.")] = 5,
    ) -> None:
        """Search.

        Args:
            query: What to look for,
                in words.
            most (int): From the docstring.
        """

    schema = listing(search).input_schema
    assert schema["required"] == ["query", "place"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["query"] == {
        "type": "string", "description": "What to look for, in words.",
    }  # fmt: skip
    assert schema["properties"]["how"] == {
        "type": "string", "enum": ["fast", "well"], "default": "fast",
    }  # fmt: skip
    assert schema["properties"]["most"]["description"] == "From Field."
    assert schema["properties"]["most"]["minimum"] == 1
    assert list(schema["$defs"]["Place"]["properties"]) == ["title", "near"]
    assert "title" not in schema
    assert "title" not in schema["$defs"]["Place"]


def test_a_default_that_json_cannot_express_is_left_out_of_the_schema() -> None:
    class Area(BaseModel):
        radius: float = math.inf

    def search(
        seconds: float = math.inf,
        nearest: float = -math.nan,
        letter: str = "half a letter: \ud83d",
        most: float = 1.5,
        area: Area = Area(),  # noqa: B008
    ) -> Area:
        raise NotImplementedError

    found = listing(search)
    properties = found.input_schema["properties"]
    with_default = [name for name, schema in properties.items() if "default" in schema]
    assert with_default == ["most"]
    json.dumps(found.describe(), allow_nan=False)


GOOGLE = """Say what.

    More of it:

        indented

    Args:
        a: First,
            in two lines.
        b (int, optional): Second: a number.
        *rest: Others.

    Returns:
        Nothing.

    Note:
        Mind this.

    Warning: Take care
        It is hot.

    Example:
        >>> say("a")

    Examples:
        As a program does.

        >>> say("b")

    Raises:
        ValueError: Never.
    """
NUMPY = """Say what.

    Parameters
    ----------
    a : str
        First,
        in two lines.
    b : int, optional
        Second: a number.
    *rest
        Others.

    Returns
    -------
    str
        Nothing.

    Notes
    -----
    Mind this.
    """
SPHINX = """Say what.

    :param str a: First,
        in two lines.
    :param b: Second: a number.
    :param rest: Others.
    :returns: Nothing.
    :raises ValueError: Never.
    """
SAID = """Say what.

More of it:

    indented

Note:
    Mind this.

Warning: Take care
    It is hot.

Example:
    >>> say("a")

Examples:
    As a program does.

    >>> say("b")"""


@pytest.mark.parametrize(
    ("docstring", "text"),
    [(GOOGLE, SAID), (NUMPY, "Say what.\n\nNotes:\n    Mind this."), (SPHINX, "Say what.")],
    ids=["google", "numpy", "sphinx"],
)
def test_the_description_is_the_docstring_without_what_is_for_programmers(
    docstring: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    parsed = parse_docstring(inspect.cleandoc(docstring))
    assert parsed.text == text
    assert parsed.arguments == {
        "a": "First, in two lines.", "b": "Second: a number.", "rest": "Others.",
    }  # fmt: skip
    assert caplog.text == ""


@pytest.mark.parametrize("docstring", ["", "Say: what\n\nArgs: none", "\n:param\n---\nReturns"])
def test_a_docstring_in_no_style_is_all_text(docstring: str) -> None:
    assert parse_docstring(docstring) == Docstring(docstring.strip())


def test_the_title_of_examples_stays_in_the_description() -> None:
    titled = "Say what.\n\nExamples: To a friend\n    >>> say('hi')"
    text = "Say what.\n\nExamples: To a friend\n    >>> say('hi')"
    assert parse_docstring(titled).text == text


def test_a_partial_hides_what_it_has_bound_and_keeps_its_timers() -> None:
    @tool(idle=60)
    def send(to: str, text: str) -> None:
        """Send a text."""

    bound = served(partial(send, to="me"))
    assert list(bound.listing.input_schema["properties"]) == ["text"]
    assert (bound.listing.name, bound.listing.description) == ("send", "Send a text.")
    assert bound.limits == Limits(idle=60.0, ceiling=300.0)


def test_names_reserved_by_pydantic_can_be_parameters() -> None:
    def odd(model_config: int, copy: str, schema: str, p0: int = 0) -> None: ...

    schema = listing(odd).input_schema
    assert list(schema["properties"]) == ["model_config", "copy", "schema", "p0"]


def test_keyword_arguments_of_any_name_leave_the_schema_open() -> None:
    def anything(a: int, **rest: Any) -> None: ...

    assert listing(anything).input_schema["additionalProperties"] is True


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (Found, "object"), (Place, "object"), (dict[str, int], "object"), (list[int], None),
        (str, None), (None, None), (TextContent, None), (list[TextContent], None), (Any, None),
        (Found | None, None), (Module, None),
    ],
)  # fmt: skip
def test_an_output_schema_is_promised_for_objects_alone(annotation: Any, kind: Any) -> None:
    def gives() -> Any: ...

    gives.__annotations__["return"] = annotation
    schema = listing(gives).output_schema
    assert (schema and schema["type"]) == kind


def test_a_generator_promises_nothing() -> None:
    async def gives() -> AsyncGenerator[dict[str, Any]]:
        yield {}

    assert listing(gives).output_schema is None


def test_progress_is_found_by_its_type_whatever_its_name() -> None:
    def works(how: Progress | None, n: int) -> None: ...

    assert list(listing(works).input_schema["properties"]) == ["n"]


def test_what_cannot_be_a_tool_is_refused_with_what_to_do() -> None:
    class Thing:
        def method(self, a: int) -> None: ...

    class Lamp(Module):
        def __init__(self, bulb: str) -> None: ...

    def takes(n: int, a: Thing) -> None: ...

    def counts(n: int, a: str) -> None: ...

    counts.__annotations__["n"] = ClassVar[int]  # which type checkers refuse, too

    def limited(n: Annotated[float, Field(examples=[math.inf])]) -> None: ...

    def works() -> None: ...

    with pytest.raises(
        ConfigError, match=r"parameter 'a' of the tool takes cannot .* its type is \S+Thing\. Use"
    ):
        listing(takes)
    with pytest.raises(
        ConfigError, match=r"parameter 'n' of the tool counts .* is ClassVar\[int\]"
    ):
        listing(counts)
    with pytest.raises(ConfigError, match="is a method without its object"):
        listing(Thing.method)
    with pytest.raises(ConfigError, match="is not a valid tool name"):
        listing(lambda: None)
    with pytest.raises(ConfigError, match=r"The class Thing .* Derive it from opentabs_py\.Module"):
        Server(tools=[Thing])
    with pytest.raises(ConfigError, match=r"^7 cannot be served as a tool"):
        Server(tools=[7])
    with pytest.raises(ConfigError, match="has no tools: mark its methods"):
        Server(tools=[Module])
    with pytest.raises(ConfigError, match=r"Cannot create Lamp without arguments: .*'bulb'"):
        Server(tools=[Lamp])
    with pytest.raises(ConfigError, match=r"tool works cannot be described in JSON: .*surrogate"):
        listing(tool(description="half a letter: \ud83d")(works))
    with pytest.raises(ConfigError, match=r"tool limited cannot be described .* not JSON"):
        listing(limited)
    with pytest.raises(TypeError, match="cannot be marked as a tool"):
        tool(Thing().method)
    with pytest.raises(TypeError, match=r"partialmethod.* Define a method that calls the other"):
        skill(cast(Any, partialmethod(Thing.method, 5)))
    with pytest.raises(ValueError, match="idle is 0"):
        tool(idle=0)
    with pytest.raises(ConfigError, match=r"readOnlyHint of the tool works is 'yes'\. Write"):
        listing(tool(annotations={"readOnlyHint": "yes"})(works))
    with pytest.raises(ConfigError, match=r"title of the tool works is 5\. Write a string"):
        listing(tool(annotations={"title": 5, "more": 1})(works))
    left_out = {"title": None, "readOnlyHint": True}
    assert listing(tool(annotations=left_out)(works)).annotations == left_out


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic accepts it there")
def test_a_typed_dict_of_typing_says_which_to_use(caplog: pytest.LogCaptureFixture) -> None:
    class Old(typing.TypedDict):
        count: int

    def takes(old: list[Old]) -> None: ...

    def returns() -> Old:
        raise NotImplementedError

    advice = "Use typing_extensions.TypedDict instead of typing.TypedDict before Python 3.12"
    with pytest.raises(ConfigError, match=f"parameter 'old' .* {advice}, or bind it"):
        listing(takes)
    assert listing(returns).output_schema is None
    assert caplog.messages == [f"The tool returns has no output schema. {advice}."]


def test_two_tools_of_one_name_are_refused_and_both_are_named() -> None:
    def send() -> None: ...

    with pytest.raises(ConfigError, match=r"Two tools are named send: .*send and .*send\."):
        Server(tools=[send, send])


def test_a_module_is_served_as_an_instance_or_a_class_and_other_methods_are_not() -> None:
    class Lamp(Module):
        @skill
        def switch(self, on: bool) -> None:
            """Switch it."""

        def hidden(self) -> None: ...

        @property
        def broken(self) -> None:
            raise AssertionError("looked at")

    for given in (Lamp, Lamp()):
        server = Server(tools=[given])
        assert server._python.tools is not None
        names = [each.listing.name for each in server._python.tools.tools]
        assert names == ["switch", "stream_read", "stream_stop"]


def test_static_and_class_methods_are_tools_on_whichever_side_they_are_marked() -> None:
    class Lamp(Module):
        @skill(name="above_static")
        @staticmethod
        def one(on: bool) -> None: ...

        @staticmethod
        @skill(name="below_static")
        def two(on: bool) -> None: ...

        @skill(name="above_class")
        @classmethod
        def three(cls, on: bool) -> None: ...

        @classmethod
        @skill(name="below_class")
        def four(cls, on: bool) -> None: ...

    tools = PythonTools([Lamp], ToolHost(AlarmClock())).tools[:-2]
    assert {each.listing.name for each in tools} == {
        "above_static", "below_static", "above_class", "below_class",
    }  # fmt: skip
    assert all(list(each.listing.input_schema["properties"]) == ["on"] for each in tools)


def test_the_tools_that_read_streams_are_ours_and_never_ask() -> None:
    class Lamp(Module):
        @skill
        def switch(self, on: bool) -> None:
            """Switch it."""

    server = Server(tools=[Lamp])
    assert server._python.tools is not None
    gated = [each.listing.gated("named") for each in server._python.tools.tools]

    ours = [each for each in gated if each.owner == OURSELVES]
    assert [each.rule for each in ours] == ["opentabs.stream_read", "opentabs.stream_stop"]
    assert [decide({}, each).permission for each in ours] == ["auto", "auto"]


def test_the_public_names_are_there_and_others_are_not() -> None:
    found = {name: getattr(opentabs_py, name) for name in opentabs_py.__all__}
    other_names = {"Server": "OpenTabs", "skill": "tool"}
    assert {name: each.__name__ for name, each in found.items()} == {
        name: other_names.get(name, name) for name in found
    }
    assert opentabs_py.Limits() == Limits(idle=30.0, ceiling=300.0)
    with pytest.raises(AttributeError):
        _ = opentabs_py.nothing


def test_a_function_whose_types_make_an_exponential_schema_is_refused() -> None:
    def many(x: Any) -> None:
        """Do nothing."""

    many.__annotations__["x"] = Annotated[int, Field(json_schema_extra=_exponential)]
    with pytest.raises(ConfigError, match="result in an unusable JSON Schema: it would be"):
        listing(many)


def _exponential(schema: dict[str, Any]) -> None:
    levels = {
        f"level{n}": {"allOf": [{"$dynamicRef": f"#/properties/x/$defs/level{n + 1}"}] * 10}
        for n in range(6)
    }
    schema["$defs"] = {**levels, "level6": {}}
    schema["$dynamicRef"] = "#/properties/x/$defs/level0"
