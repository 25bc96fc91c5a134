"""A plugin's settings: valid declarations, valid values, and how problems are reported."""

import datetime as dt
import json
from typing import Any

import pytest

from opentabs_py.core.plugins.settings import (
    Typed,
    declared_settings,
    find_schema_problems,
    find_unknown_plugins,
    parse_assignment,
    possible_secrets,
    resolve_values,
    url_pattern,
    url_setting_patterns,
)
from opentabs_py.core.sites.match_patterns import parse as parse_match_pattern
from opentabs_py.core.text import path_text
from opentabs_py.errors import PluginError

Json = dict[str, Any]

SECRET = "hunter2"


def schema_problems(**about: object) -> list[str]:
    declared: Json = {"it": about}
    return [f"{path_text(path)}: {why}" for path, why in find_schema_problems(declared)]


def problems(schema: Json, given: Json) -> list[str]:
    """Return the problem lines for the values of a plugin named my-chat."""
    with pytest.raises(PluginError) as caught:
        resolve_values("my-chat", schema, given)
    head, *lines = str(caught.value).split("\n  ")
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    assert head == f"The settings of the plugin 'my-chat' are not valid; they have {count}:"
    return lines


def problem(kind: str, given: object, **more: Any) -> str:
    [line] = problems({"it": {"type": kind, **more}}, {"it": given})
    return line


def value(kind: str, given: object, **more: Any) -> object:
    return resolve_values("my-chat", {"it": {"type": kind, **more}}, {"it": given})["it"]


# --- declarations ---


@pytest.mark.parametrize(
    "about",
    [
        {"type": "url", "label": "Site", "description": "Yours", "placeholder": "https://x.y"},
        {"type": "url", "required": True, "default": "https://chat.example:8443/path"},
        {"type": "string", "default": "", "required": False, "secret": True, "later": {"a": 1}},
        {"type": "number", "default": 1.5, "label": None, "description": None},
        {"type": "boolean", "default": False, "required": None},
        {"type": "select", "options": ["a", {"value": "b", "label": "B"}], "default": "b"},
        {"type": "string", "options": "only a select has some"},
    ],
)
def test_what_may_be_declared_is_not_a_problem(about: Json) -> None:
    assert schema_problems(**about) == []


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({}, 'it.type: is missing; write one of "url", "string", "number", "boolean", "select"'),
        ({"type": "colour"}, 'it.type: is "colour", not a valid setting type; write one of'),
        ({"type": ["url"]}, 'it.type: is ["url"], not a valid setting type; write one of'),
        (
            {"type": "url", "label": 1},
            "it.label: is 1, not a string; write a string or leave it out",
        ),
        ({"type": "url", "placeholder": []}, "it.placeholder: is [], not a string"),
        ({"type": "url", "required": "yes"}, 'it.required: is "yes"; write true or false'),
        ({"type": "select"}, 'it.options: is not a list of choices; write one, such as ["daily"'),
        ({"type": "select", "options": []}, "it.options: is not a list of choices"),
        ({"type": "select", "options": {"a": "A"}}, "it.options: is not a list of choices"),
        (
            {"type": "select", "options": ["a", 1]},
            'it.options[1]: is 1; write a string, or {"value"',
        ),
        ({"type": "select", "options": [{"label": "A"}], "default": "A"}, "it.options[0]: is {"),
        (
            {"type": "select", "options": ["a", "b"], "default": "c"},
            'it.default: is not one of "a", "b", as its type requires; write one or leave it out',
        ),
        (
            {"type": "url", "default": "chat.example"},
            "it.default: is not an http or https URL, or",
        ),
        ({"type": "number", "default": "1"}, "it.default: is not a number"),
        ({"type": "number", "default": True}, "it.default: is not a number"),
        ({"type": "boolean", "default": "true"}, "it.default: is not true or false"),
        ({"type": "string", "default": 1}, "it.default: is not a string"),
    ],
)
def test_what_may_not_be_declared_is_reported_with_its_path(about: Json, told: str) -> None:
    [problem] = schema_problems(**about)
    assert problem.startswith(told)


def test_all_problems_of_a_schema_are_reported_together() -> None:
    declared: Json = {
        "a": {"type": "x", "label": 1},
        "b": "told elsewhere",
        "c": {"type": "select", "options": [1, "b", 2]},
    }
    paths = [path_text(path) for path, _ in find_schema_problems(declared)]
    assert paths == ["a.type", "a.label", "c.options[0]", "c.options[2]"]


def test_a_setting_s_label_may_be_its_description() -> None:
    schema: Json = {
        "a": {"type": "url", "label": "A", "description": "The a"},
        "b": {"type": "url", "description": "The b"},
        "c": {"type": "url"},
    }
    labels = {key: setting.label for key, setting in declared_settings(schema).items()}
    assert labels == {"a": "A", "b": "The b", "c": None}


# --- values ---


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        ("string", "text", "text"),
        ("string", "", ""),
        ("string", Typed("5"), "5"),
        ("number", 5, 5),
        ("number", 0.5, 0.5),
        ("number", Typed("5"), 5),
        ("number", Typed("-5"), -5),
        ("number", Typed("+1.5e3"), 1500.0),
        ("number", Typed("9007199254740993000"), 9007199254740993000.0),
        ("boolean", True, True),
        ("boolean", Typed("true"), True),
        ("boolean", Typed("false"), False),
        ("url", "http://localhost:3000", "http://localhost:3000"),
        ("url", Typed("HTTPS://Chat.Example/a?b#c"), "HTTPS://Chat.Example/a?b#c"),
    ],
)
def test_a_value_of_the_right_type_is_accepted(kind: str, given: object, read: object) -> None:
    taken = value(kind, given)
    assert taken == read
    assert type(taken) is type(read)


NAMED: Json = {"work": "https://chat.example", "home": "http://127.0.0.1:8080/a"}


@pytest.mark.parametrize("given", [NAMED, Typed(json.dumps(NAMED))])
def test_a_url_may_be_several_by_the_names_of_instances(given: object) -> None:
    assert value("url", given) == NAMED


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({}, "is an empty table, not an http or https URL, or a table of named ones; set it"),
        ({"work": 5}, 'has an instance "work" that is 5, not an http or https URL'),
        ({"work": NAMED}, 'has an instance "work" that is a table, not an http or https URL'),
        ({"work": "ftp://x.example"}, 'has an instance "work" that is "ftp://x.example", not a'),
        ({" ": "https://x.example"}, 'has an instance named " ", not an http or https URL'),
        ({"a\n": "https://x.example"}, r'has an instance named "a\n", not an http or https URL'),
        ({"n" * 65: "https://x.example"}, 'has an instance named "nnn'),
        (
            {
                "work": "https://x.example/a/",
                "b": "https://y.example",
                "home": "https://X.example:443/a",
            },
            'has one address for both "work" and "home", not an http or https URL',
        ),
        (Typed("{work: x}"), "is a table that is not JSON, not an http or https URL"),
        (Typed('{"work": "x"}'), 'has an instance "work" that is "x", not an http or https URL'),
    ],
)
def test_instances_that_cannot_be_distinguished_or_opened_are_refused(
    given: object, what: str
) -> None:
    assert what in problem("url", given)


def test_no_problem_of_an_instance_shows_a_secret_of_its_url() -> None:
    assert "hunter2" not in problem("url", {"work": "ftp://me:hunter2@x.example/?key=hunter2"})


def test_a_select_accepts_the_values_of_its_options() -> None:
    options = ["daily", {"value": "weekly", "label": "Once a week"}]
    for given in ("daily", "weekly", Typed("weekly")):
        taken = value("select", given, options=options)
        assert (taken, type(taken)) == (given, str)
    assert problem("select", "Once a week", options=options) == (
        'my-chat.it is "Once a week", not one of "daily", "weekly"; set it with '
        '--set my-chat.it=daily, or as it = "daily" under [plugin_settings.my-chat] in a settings '
        "file"
    )


@pytest.mark.parametrize(
    ("kind", "given", "what"),
    [
        ("number", "5", 'is "5", not a number; set it with --set my-chat.it=10, or as it = 10 '),
        ("number", True, "is true, not a number"),
        ("number", float("inf"), "is Infinity, not a number"),
        ("number", Typed("1e999"), 'is "1e999", not a number'),
        ("number", Typed("five"), 'is "five", not a number'),
        ("number", Typed("1_0"), 'is "1_0", not a number'),
        ("number", Typed("\u0665"), "not a number"),  # the Arabic digit five
        ("number", Typed("nan"), 'is "nan", not a number'),
        ("number", Typed("5\n"), r'is "5\n", not a number'),
        ("number", [1], "is a list, not a number"),
        ("boolean", "true", 'is "true", not true or false; set it with --set my-chat.it=true'),
        ("boolean", Typed("yes"), 'is "yes", not true or false'),
        ("boolean", 1, "is 1, not true or false"),
        ("boolean", {"a": 1}, "is a table, not true or false"),
        ("boolean", dt.date(2026, 1, 1), "is a date or a time, not true or false"),
        ("string", 5, "is a number, not a string; set it with --set my-chat.it=text, or as "),
        ("string", False, "is true or false, not a string"),
        ("string", ["a"], "is a list, not a string"),
        (
            "url",
            5,
            "is 5, not an http or https URL, or a table of named ones; set it with --",
        ),
        ("url", "chat.example", 'is "chat.example", not an http or https URL'),
        ("url", "ftp://chat.example/", 'is "ftp://chat.example/", not an http or https URL'),
        ("url", "javascript:alert(1)", 'is "javascript:alert(1)", not an http or https URL'),
        ("url", "", 'is "", not an http or https URL'),
        ("url", "https://", 'is "https://", not an http or https URL'),
        ("url", "https://*/", 'is "https://*/", not an http or https URL'),
        ("url", "https://*.example/", 'is "https://*.example/", not an http or https URL'),
        ("url", "https://chat.example:x/", "not an http or https URL"),
        ("url", "https://chat.example:99999/", "not an http or https URL"),
        ("url", "https://chat .example/", "not an http or https URL"),
        ("url", "https://chat.example/\n", "not an http or https URL"),
        ("url", "https://[::1/", "not an http or https URL"),
        ("url", "https://chat..example/", "not an http or https URL"),
        ("url", "https://" + "ä" * 70 + ".example/", "not an http or https URL"),
        ("select", "c", 'is "c", not one of "a"'),
        ("select", 1, 'is 1, not one of "a"'),
        ("select", ["a"], 'is a list, not one of "a"'),
    ],
)
def test_a_value_of_another_type_is_reported_with_what_is_allowed_and_how_to_set_it(
    kind: str, given: object, what: str
) -> None:
    line = problem(kind, given, options=["a"])
    assert line.startswith("my-chat.it ")
    assert what in line
    assert "--set my-chat.it=" in line
    assert "under [plugin_settings.my-chat] in a settings file" in line


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("url", f"ftp://user:{SECRET}@chat.example/"),
        ("url", f"ftp://chat.example/?token={SECRET}"),
        ("url", f"ftp://chat.example/#{SECRET}"),
        ("string", [SECRET]),
    ],
)
def test_no_problem_shows_what_may_be_a_secret(kind: str, given: object) -> None:
    assert SECRET not in problem(kind, given)


def test_what_is_not_given_has_its_default_or_is_left_out() -> None:
    schema: Json = {
        "a": {"type": "number", "default": 0, "required": True},
        "b": {"type": "string"},
        "c": {"type": "boolean", "default": False},
    }
    assert resolve_values("my-chat", schema, {"c": None}) == {"a": 0, "c": False}


def test_what_is_required_must_be_given_and_must_not_be_empty() -> None:
    about = {"type": "string", "required": True, "label": "Your token"}
    [line] = problems({"it": about}, {})
    assert line == (
        "my-chat.it is missing (Your token); it must be a string; set it with "
        '--set my-chat.it=text, or as it = "text" under [plugin_settings.my-chat] in a settings '
        "file"
    )
    assert problem("string", "", required=True).startswith("my-chat.it is empty, not a string;")
    [line] = problems({"it": {"type": "url", "required": True}}, {"it": None})
    assert line.startswith("my-chat.it is missing; it must be an http or https URL, or a table")


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"site": {"type": "url"}}, "did you mean 'site'?"),
        ({"token": {"type": "string"}, "mode": {"type": "string"}}, "it has token, mode"),
        ({}, "it has none; leave it out"),
    ],
)
def test_an_undeclared_key_is_reported_with_the_declared_ones(schema: Json, hint: str) -> None:
    assert problems(schema, {"sites": SECRET}) == [
        f"my-chat.sites is set, but the plugin has no such setting; {hint}"
    ]


def test_all_problems_of_the_values_are_reported_together() -> None:
    schema: Json = {
        "a": {"type": "number"},
        "b": {"type": "url", "required": True},
        "c": {"type": "boolean"},
    }
    told = problems(schema, {"a": "x", "c": "y", "d": 1, "e": 2})
    assert [line.split()[0] for line in told] == [
        "my-chat.d", "my-chat.e", "my-chat.a", "my-chat.b", "my-chat.c",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("chat.site=https://x.example/?a=b", ("chat", "site", "https://x.example/?a=b")),
        ("my-chat.a.b= c ", ("my-chat", "a.b", " c ")),
        ("chat.token=", ("chat", "token", "")),
        ("chat.text=two\nlines", ("chat", "text", "two\nlines")),
    ],
)
def test_an_assignment_is_read(text: str, parsed: tuple[str, str, str]) -> None:
    read = parse_assignment(text)
    assert read == parsed
    assert isinstance(read[2], Typed)


@pytest.mark.parametrize("text", ["", "chat", "chat.site", "chat=1.2", ".site=1", "chat.=1", "=1"])
def test_an_invalid_assignment_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"^write PLUGIN\.KEY=VALUE, for example --set chat\.site"):
        parse_assignment(text)


# --- what follows ---


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("https://chat.example", "https://chat.example/*"),
        ("http://chat.example:8080/some/path?q#f", "http://chat.example/*"),
        ("https://user:word@Chat.Example./", "https://chat.example./*"),
        ("http://127.0.0.1:1", "http://127.0.0.1/*"),
        ("http://[::1]:3000/x", "http://[::1]/*"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/*"),
    ],
)
def test_a_url_stands_for_its_site_at_every_port(url: str, pattern: str) -> None:
    assert url_pattern(url) == pattern
    if url.isascii():
        assert parse_match_pattern(pattern).matches(url)


def test_each_url_setting_adds_its_pattern_once() -> None:
    schema: Json = {
        "a": {"type": "url"},
        "b": {"type": "url"},
        "c": {"type": "string"},
        "d": {"type": "url"},
    }
    site = "https://chat.example"
    values: Json = {"a": site, "b": f"{site}/b", "c": "https://no.example"}
    assert url_setting_patterns(schema, values) == ("https://chat.example/*",)
    assert url_setting_patterns(schema, {"a": NAMED, "b": site}) == (
        "https://chat.example/*",
        "http://127.0.0.1/*",
    )


def test_unknown_plugins_are_found_by_where_they_were_named() -> None:
    given: dict[str, Json] = {
        "chat": {"a": Typed("1")},
        "chta": {"a": 1, "b": Typed("2")},
        "mial": {"a": 1},
        "other": {},
    }
    typed, written = find_unknown_plugins(given, ["chat", "mail"])
    assert typed == ["'chta' (did you mean 'chat'?)"]
    assert written == ["'mial' (did you mean 'mail'?)", "'other'"]


def test_texts_may_be_secrets_and_other_settings_are_none() -> None:
    schema: Json = {
        "key": {"type": "string"},
        "unset": {"type": "string"},
        "site": {"type": "url"},
        "count": {"type": "number"},
    }
    values: Json = {"key": "s3cr3t", "site": "https://x.example", "count": 3}
    assert [*possible_secrets(schema, values)] == ["s3cr3t"]
