"""The extension's checks are generated from the models, and agree with them."""

import copy
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from opentabs_py.core import wire

ROOT = Path(__file__).parents[2]
NODE = Path(sys.executable).with_name("node")

ADAPTERS = {**wire.CHECKED, **wire.SENT}
Judge = Callable[[list[tuple[str, str]]], list[str | None]]


def test_the_generated_files_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, ".ci/generate.py", "--check"], cwd=ROOT, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture(scope="session")
def judge_in_javascript() -> Iterator[Judge]:
    """Return a function that returns where JavaScript rejects each message; None if it is valid."""
    command = [str(NODE), "--no-warnings", str(Path(__file__).with_name("judge.mjs"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as node:
        assert node.stdin is not None
        assert node.stdout is not None
        to_node, from_node = node.stdin, node.stdout

        def judge(messages: list[tuple[str, str]]) -> list[str | None]:
            to_node.writelines(json.dumps(message) + "\n" for message in messages)
            to_node.flush()
            return [json.loads(from_node.readline()) for _ in messages]

        yield judge
        to_node.close()


def is_sound_in_python(kind: str, text: str) -> bool:
    try:
        wire.validate(ADAPTERS[kind], text)
    except ValidationError:
        return False
    return True


# --- messages from the models' JSON schemas ---

names = st.text(min_size=1, max_size=8)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


def sound(schema: dict[str, Any], definitions: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a schema, as far as our models generate such schemas."""
    match schema:
        case {"$ref": ref}:
            return sound(definitions[ref.rpartition("/")[2]], definitions)
        case {"const": value}:
            return st.just(value)
        case {"enum": values}:
            return st.sampled_from(values)
        case {"anyOf": schemas} | {"oneOf": schemas}:
            return st.one_of([sound(each, definitions) for each in schemas])
        case {"type": "array", "items": items}:
            return st.lists(sound(items, definitions), max_size=2)
        case {"type": "object", "properties": properties}:
            fields = {name: sound(each, definitions) for name, each in properties.items()}
            required = {*schema.get("required", ()), "method"} & fields.keys()
            return st.fixed_dictionaries(
                {name: fields[name] for name in required},
                optional={name: fields[name] for name in fields.keys() - required},
            )
        case {"type": "object", "additionalProperties": dict(values)}:
            return st.dictionaries(names, sound(values, definitions), max_size=2)
        case {"type": "object"}:
            return st.dictionaries(names, anything, max_size=2)
        case _:
            return sound_leaf(schema)


def sound_leaf(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    match schema.get("type"):
        case "string" if "pattern" in schema:
            return st.from_regex(schema["pattern"], fullmatch=True)
        case "string":
            return st.text(min_size=schema.get("minLength", 0), max_size=8)
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
        case "number":
            return st.floats(schema.get("minimum"), allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case _:
            return anything


def sound_messages(kind: str) -> st.SearchStrategy[tuple[str, Any]]:
    schema = ADAPTERS[kind].json_schema()
    return st.tuples(st.just(kind), sound(schema, schema["$defs"]))


MESSAGES = st.one_of([sound_messages(kind) for kind in wire.CHECKED])

# Values of every type, at and past every bound. Integers are written as such: 1.0 is an integer in
# JavaScript, but not in Python.
ODD = [
    *(None, True, False, 0, 1, -1, 2**53 - 1, 2**53, 10**30, 10**400, 0.5, -0.5, 1e300),
    *("", "1", "ready", "2.0", "a" * 32, "A" * 32, "a" * 32 + "\n"),
    *("x" * 256, "x" * 257, "\U0001f600" * 256, "\U0001f600" * 257, "x" * 8192, "x" * 8193),
    *([], [None], ["a" * 32], ["a" * 32] * 4096, ["a" * 32] * 4097, {}, {"": 1}, {"a": 1.5}),
    *({str(n): 1 for n in range(16)}, {str(n): 1 for n in range(17)}),
]
ODD_NAMES = ["x", "", "__proto__", "toString", "document_id", "call_id", "id", "y" * 257]


def places(value: object) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each object within a message, with each of its keys."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield value, key
            yield from places(item)
    elif isinstance(value, list):
        for item in value:
            yield from places(item)


def mutated(message: object, random: Random) -> object:
    """Return a message with one or two things wrong, or odd."""
    message = copy.deepcopy(message)
    for _ in range(random.choice([1, 1, 1, 2])):
        container, key = random.choice(list(places(message)))
        match random.choice(["resize", "resize", "retype", "drop", "add", "rename"]):
            case "resize":
                alike = [odd for odd in ODD if type(odd) is type(container.get(key))]
                container[key] = copy.deepcopy(random.choice(alike or ODD))
            case "retype":
                container[key] = copy.deepcopy(random.choice(ODD))
            case "drop":
                del container[key]
            case "add":
                container[random.choice(ODD_NAMES)] = copy.deepcopy(random.choice(ODD))
            case "rename":
                container[to_snake(key)] = container.pop(key)
    return message


def test_python_and_javascript_judge_every_message_alike(judge_in_javascript: Judge) -> None:
    verdicts: Counter[bool] = Counter()

    @settings(max_examples=3000 if "SOAK" in os.environ else 160)
    @given(MESSAGES, st.integers(0, 2**32))
    def judge(message: tuple[str, Any], seed: int) -> None:
        kind, sound_one = message
        random = Random(seed)
        variants = [sound_one, *(mutated(sound_one, random) for _ in range(12))]
        texts = [json.dumps(variant) for variant in variants]
        problems = judge_in_javascript([(kind, text) for text in texts])
        assert problems[0] is None
        for text, found in zip(texts, problems, strict=True):
            assert is_sound_in_python(kind, text) == (found is None), (found, text)
            verdicts[found is None] += 1

    judge()
    assert verdicts.total() >= 2000
    assert min(verdicts[True], verdicts[False]) >= 200


@pytest.mark.parametrize(
    ("name", "is_sound"),
    [("", False), ("y" * 256, True), ("y" * 257, False), ("\U0001f600" * 256, True)],
)
def test_names_are_bounded(name: str, is_sound: bool) -> None:
    document = {
        "documentId": "d" * 32, "tabId": 1, "url": "", "title": "", "active": True,
        "focused": True, "protected": True, "calls": [],
        "plugins": {name: {"readiness": "ready"}},
    }  # fmt: skip
    params = {"tabIds": [1], "documents": [document]}
    text = json.dumps({"method": "tabs.changed", "params": params})
    assert is_sound_in_python("FromExtension", text) == is_sound
