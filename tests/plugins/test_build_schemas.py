"""The JSON Schemas that the builder makes of Zod's, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.core.schemas.checker import Checker
from opentabs_py.plugins.build import Builder
from tests.plugins.sources import HEAD, TOOL, build, source, tools


async def test_the_schemas_are_those_that_zod_generates(builder: Builder, tmp_path: Path) -> None:
    schema = """z.object({
        text: z.string().min(1).describe('What is said'),
        to: z.enum(['all', 'me']).default('all'),
        tags: z.array(z.string().trim()).optional(),
    })"""
    await build(builder, source(tmp_path, given=schema))

    [tool] = tools(tmp_path)

    assert tool["input_schema"] == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "description": "What is said"},
            "to": {"type": "string", "enum": ["all", "me"], "default": "all"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


async def test_an_input_schema_says_which_of_its_objects_are_closed(
    builder: Builder, tmp_path: Path
) -> None:
    schema = """z.object({
        plain: z.object({ a: z.string() }).optional(),
        strict: z.strictObject({}),
        loose: z.looseObject({}),
        open: z.object({}).catchall(z.number()),
        both: z.object({ a: z.string() }).and(z.object({ b: z.object({}) })),
        lists: z.object({ l: z.array(z.object({})) }).and(z.object({ m: z.array(z.object({})) })),
        either: z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
    })"""
    await build(builder, source(tmp_path, given=schema))

    [tool] = tools(tmp_path)
    members = tool["input_schema"]["properties"]
    more = {name: member.get("additionalProperties") for name, member in members.items()}

    assert more == {
        "plain": False,
        "strict": False,
        "loose": {},
        "open": {"type": "number"},
        "both": None,
        "lists": None,
        "either": None,
    }
    assert [each["additionalProperties"] for each in members["either"]["anyOf"]] == [False, False]
    assert members["both"]["properties"]["b"]["additionalProperties"] is False
    assert members["lists"]["properties"]["l"]["items"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            "z.array(z.object({ a: z.string() })).and(z.array(z.object({ b: z.string() })))",
            [{"a": "x", "b": "y"}],
        ),
        (
            """z.object({ r: z.record(z.string(), z.object({ a: z.string() })) })
                .and(z.object({ r: z.record(z.string(), z.object({ b: z.string() })) }))""",
            {"r": {"key": {"a": "x", "b": "y"}}},
        ),
        (
            """z.object({ o: z.object({ a: z.string() }).optional() })
                .and(z.object({ o: z.object({ b: z.string() }).describe("B") }))""",
            {"o": {"a": "x", "b": "y"}},
        ),
        (
            "z.tuple([z.object({ a: z.string() })]).and(z.array(z.object({ b: z.string() })))",
            [{"a": "x", "b": "y"}],
        ),
        (
            "z.record(z.string(), z.object({ a: z.string() })).and(z.object({ k: z.object({}) }))",
            {"k": {"a": "x"}},
        ),
    ],
)
async def test_the_parts_of_an_intersection_accept_each_other_s_members_at_every_depth(
    builder: Builder, tmp_path: Path, schema: str, value: Any
) -> None:
    await build(builder, source(tmp_path, given=f"z.object({{ it: {schema} }})"))

    [tool] = tools(tmp_path)

    assert Checker(tool["input_schema"]).violations({"it": value}) == []


async def test_what_a_tool_returns_may_have_members_that_its_schema_does_not_name(
    builder: Builder, tmp_path: Path
) -> None:
    await build(builder, source(tmp_path))

    [tool] = tools(tmp_path)

    assert "additionalProperties" not in tool["output_schema"]


FLAGGED = [
    ("z.string().regex(/^a+$/i)", {"type": "string"}),
    ("z.string().regex(/^a.b$/s).min(3)", {"type": "string", "minLength": 3}),
    (r"z.string().regex(/^\p{L}+$/u)", {"type": "string", "pattern": r"^\p{L}+$"}),
    (
        "z.string().regex(/^a$/m).regex(/b/).regex(/^c/)",
        {"type": "string", "allOf": [{"pattern": "b"}, {"pattern": "^c"}]},
    ),
    ("z.stringFormat('even', /^(aa)*$/i)", {"type": "string", "format": "even"}),
    ("z.array(z.string().regex(/x/i).optional())", {"type": "array", "items": {"type": "string"}}),
]


@pytest.mark.parametrize(("schema", "expected"), FLAGGED)
async def test_a_pattern_that_means_something_else_without_its_flags_is_left_out(
    builder: Builder, tmp_path: Path, schema: str, expected: object
) -> None:
    both = f"z.object({{ it: {schema} }})"
    await build(builder, source(tmp_path, given=both, output=both))

    [tool] = tools(tmp_path)

    assert tool["input_schema"]["properties"]["it"] == expected
    assert tool["output_schema"]["properties"]["it"] == expected


OVERWRITTEN = [
    (r"z.string().trim().regex(/^\d+$/)", {"type": "string"}),
    ("z.string().min(2).trim().max(3)", {"type": "string", "minLength": 2}),
    ("z.string().trim().max(3).describe('A').optional()", {"type": "string", "description": "A"}),
    ("z.string().trim().check(z.email())", {"type": "string"}),
    (
        "z.string().trim().max(3).meta({ pattern: 'x' })",
        {"type": "string", "pattern": "x"},
    ),
    ("z.string().toLowerCase().regex(/a/).regex(/b/)", {"type": "string"}),
    ("z.string().regex(/a/).normalize().regex(/b/)", {"type": "string", "pattern": "a"}),
    ("z.number().min(1).overwrite(Math.round).int().max(5)", {"type": "number", "minimum": 1}),
    (
        "z.array(z.string().min(2)).overwrite((all) => all.slice(0, 2)).max(2)",
        {"type": "array", "items": {"type": "string", "minLength": 2}},
    ),
]


@pytest.mark.parametrize(("schema", "expected"), OVERWRITTEN)
async def test_a_check_of_what_zod_has_changed_is_left_out(
    builder: Builder, tmp_path: Path, schema: str, expected: object
) -> None:
    await build(builder, source(tmp_path, given=f"z.object({{ it: {schema} }})"))

    [tool] = tools(tmp_path)

    assert tool["input_schema"]["properties"]["it"] == expected


COERCED = [
    ("z.coerce.string().max(3)", ["string", "number", "boolean", "null"]),
    ("z.coerce.number().min(3)", ["number", "string", "boolean", "null"]),
    ("z.coerce.number().int().default(1)", ["integer", "string", "boolean", "null"]),
    ("z.coerce.boolean().optional().describe('A')", ["boolean", "string", "number", "null"]),
]


@pytest.mark.parametrize(("schema", "types"), COERCED)
async def test_an_argument_that_zod_coerces_may_have_other_types(
    builder: Builder, tmp_path: Path, schema: str, types: list[str]
) -> None:
    both = f"z.object({{ it: {schema} }})"
    await build(builder, source(tmp_path, given=both, output=both))

    [tool] = tools(tmp_path)

    assert tool["input_schema"]["properties"]["it"]["type"] == types
    assert tool["output_schema"]["properties"]["it"]["type"] == types[0]  # it is sent unparsed


async def test_a_member_that_zod_replaces_when_it_is_absent_is_not_required(
    builder: Builder, tmp_path: Path
) -> None:
    schema = """z.object({
        size: z.number().catch(10),
        name: z.string(),
        more: z.object({ color: z.string().catch("red") }),
    })"""
    await build(builder, source(tmp_path, given=schema, output=schema))

    [tool] = tools(tmp_path)

    for side in ("input_schema", "output_schema"):
        assert tool[side]["required"] == ["name", "more"]
        assert "required" not in tool[side]["properties"]["more"]


REFUSED = {
    "transform": ("z.string().transform((s) => s.length)", "input.it: uses .transform()"),
    "pipe": ("z.string().pipe(z.string().min(1))", "input.it: uses .pipe()"),
    "preprocess": ("z.preprocess((s) => s, z.string())", "input.it: uses z.preprocess()"),
    "codec": ("z.stringbool()", "input.it: uses a codec"),
    "date": ("z.array(z.date())", "input.it[]: uses z.date()"),
    "bigint": ("z.bigint()", "input.it: uses z.bigint()"),
    "symbol": ("z.symbol()", "input.it: uses z.symbol()"),
    "undefined": ("z.union([z.string(), z.undefined()])", "input.it: uses z.undefined()"),
    "void": ("z.void()", "input.it: uses z.void()"),
    "nan": ("z.nan()", "input.it: uses z.nan()"),
    "map": ("z.map(z.string(), z.string())", "input.it: uses z.map()"),
    "set": ("z.set(z.string())", "input.it: uses z.set()"),
    "file": ("z.file()", "input.it: uses z.file()"),
    "promise": ("z.promise(z.string())", "input.it: uses z.promise()"),
    "custom": ("z.instanceof(URL)", "input.it: uses z.custom() or z.instanceof()"),
    "literal": ("z.literal([1, 2n])", "input.it: has a literal that JSON cannot express"),
    "deep": ("z.object({ 'a b': z.tuple([z.date()]) }).optional()", 'input.it["a b"][0]: uses'),
    "record": ("z.record(z.string(), z.date())", "input.it.*: uses z.date()"),
    "lazy": ("z.lazy(() => z.date())", "input.it: uses z.date()"),
    "intersection": (
        "z.intersection(z.object({ a: z.date() }), z.object({}))",
        "input.it.a: uses z.date()",
    ),
    "reference": (
        "z.string().meta({ $ref: 'https://example.com/text.json' })",
        'input.it: refers to "https://example.com/text.json"',
    ),
    "refine": (
        "z.url().refine((url) => new URL(url).host !== 'x')",
        'input.it: has a .refine() that throws when it is called with "" (Invalid URL)',
    ),
    "refine of an object": (
        "z.object({ a: z.string().min(3) }).refine((it) => it.a[2].length === 1)",
        "input.it: has a .refine() that throws when it is called with",
    ),
    "refine of a list": (
        "z.array(z.object({ n: z.int() })).min(1).refine((all) => all[0].n > 0)",
        "input.it: has a .refine() that throws when it is called with []",
    ),
    "no member": ("z.object({ a: undefined })", "input.it.a: is undefined"),
    "no element": ("z.array(undefined)", "input.it[]: is undefined"),
    "no catchall": ("z.object({}).catchall({})", "input.it.*: is not a schema of Zod 4"),
    "no inner type": ("z.optional(undefined)", "input.it: is undefined"),
    "no end of a pipe": ("z.pipe(undefined, undefined)", "input.it: uses .pipe()"),
    "no lazy schema": ("z.lazy(() => undefined)", "input.it: is undefined"),
    "a lazy schema that throws": (
        "z.lazy(() => { throw new Error('not yet'); })",
        "input.it: cannot be read (not yet)",
    ),
    "a getter that throws": (
        "z.object({ get a() { throw new Error('not yet'); } })",
        "input.it: cannot be read (not yet)",
    ),
    "default": ("z.any().default(1n)", "input: cannot be written as JSON Schema"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_json_schema_cannot_say_is_refused_by_its_path(
    builder: Builder, tmp_path: Path, name: str
) -> None:
    schema, wanted = REFUSED[name]

    built = await builder.build(source(tmp_path, given=f"z.object({{ it: {schema} }})"))

    [problem] = built.problems
    assert str(problem).startswith(f"src/tools.ts:3: send_message {wanted}")
    assert ";" in problem.why or "," in problem.why  # and says what to write instead
    assert not (tmp_path / "dist").exists()


ALLOWED = [
    "z.url().refine((url) => URL.canParse(url) && new URL(url).host !== 'x')",
    "z.string().refine((text) => document.title !== text)",
    "z.string().refine(async (text) => text !== 'x')",
    "z.string().trim().toLowerCase()",
    "z.coerce.number()",
    "z.string().catch('x').readonly().nullable().default('y')",
    "z.templateLiteral(['a', z.number()])",
    "z.unknown()",
    "z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') })])",
]


@pytest.mark.parametrize("schema", ALLOWED)
async def test_what_json_schema_can_say_is_built(
    builder: Builder, tmp_path: Path, schema: str
) -> None:
    await build(builder, source(tmp_path, given=f"z.object({{ it: {schema} }})"))


async def test_a_schema_that_contains_itself_is_built(builder: Builder, tmp_path: Path) -> None:
    tree = "const Tree = z.object({ get children() { return z.array(Tree); } });\n"
    text = HEAD + tree + TOOL.format(input="z.object({ tree: Tree })", output="z.object({})")

    await build(builder, source(tmp_path, **{"src/tools.ts": text}))

    assert "$ref" in json.dumps(tools(tmp_path)[0]["input_schema"])


@pytest.mark.parametrize("schema", ["z.string()", "z.union([z.object({}), z.object({})])"])
async def test_an_input_that_is_not_an_object_is_refused(
    builder: Builder, tmp_path: Path, schema: str
) -> None:
    built = await builder.build(source(tmp_path, given=schema))

    [problem] = built.problems
    assert (problem.path, problem.why.partition(",")[0]) == ("input", "is not an object")


@pytest.mark.parametrize("schema", ["undefined", "{ type: 'object' }"])
async def test_a_schema_that_is_not_from_zod_is_refused(
    builder: Builder, tmp_path: Path, schema: str
) -> None:
    built = await builder.build(source(tmp_path, output=schema))

    [problem] = built.problems
    assert problem.path == "output"
    assert "write one, as in z.object({ ok: z.boolean() })" in problem.why


async def test_the_output_is_checked_as_the_input_is(builder: Builder, tmp_path: Path) -> None:
    built = await builder.build(source(tmp_path, output="z.object({ at: z.date() })"))

    assert [problem.path for problem in built.problems] == ["output.at"]
