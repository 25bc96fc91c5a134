"""Write the tools of a plugin as TypeScript or JavaScript."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal
from urllib.parse import quote, urlsplit

from opentabs_py.generate.inputs import Input, Inputs, TimeUnit
from opentabs_py.generate.json_paths import Path
from opentabs_py.generate.names import (
    HAS_MORE,
    MAX_PAGES,
    camel,
    export_name,
    is_identifier,
    unique,
)
from opentabs_py.generate.pagination import Pagination
from opentabs_py.generate.plan import PlannedTool
from opentabs_py.generate.zod import argument, literal, member, schema

Language = Literal["ts", "js"]

_MOST_PAGES: Final = 100
_PAGES: Final = 10
_LOCALS: Final = frozenset(
    """
    FIELDS OPERATION Result action answer call context details encodeURIComponent form found graphql
    heading link maxPages next nextPage notice openPage page read request rows sendForm title tokens
    undefined z
    """.split()  # noqa: SIM905 (a list has one line per word)
)
_NOW: Final[Mapping[TimeUnit, str]] = {"ms": "Date.now()", "s": "Math.floor(Date.now() / 1000)"}
_WIDTH: Final = 72  # columns of a call, besides its indentation


def tool_source(tool: PlannedTool, language: Language) -> str:
    """Return the module of a tool."""
    return _Writer(tool, language).text()


class _Writer:
    def __init__(self, tool: PlannedTool, language: Language) -> None:
        if (pagination := tool.pagination) is not None and (skipped := len(tool.unwrap)):
            # The functions that send requests return what is in there.
            paths = ("items", "next", "more", "pages", "total")
            inner = {name: getattr(pagination, name)[skipped:] for name in paths}
            tool = replace(tool, pagination=replace(pagination, **inner))
        self._tool = tool
        self._is_ts = language == "ts"
        self._language = language

    def text(self) -> str:
        tool = self._tool
        answers = bool(tool.operation.answered)
        body = self._pages(tool.pagination) if tool.pagination else self._plain(answers=answers)
        used = "\n".join(body)
        names = [each for each in ("call", "graphql", "link", "request")
                 if re.search(rf"\b{each}[<(]", used)]  # fmt: skip
        names += ["tokens"] if tool.inputs.tokens else []
        imports = f'import {{ {", ".join(names)} }} from "../api.{self._language}";'
        above = [*self._operation(), f"const Result = {schema(tool.result)};"]
        return module_source(tool, imports, above, body, has_pages=tool.pagination is not None)

    def _operation(self) -> Sequence[str]:
        """Return the lines that define what GraphQL is asked to run."""
        if self._tool.operation.style != "graphql":
            return []
        envelope = self._tool.operation.works[0].envelope or {}
        lines = [f"  {member(name)}: {_text(value)}," for name, value in envelope.items()]
        return ["const OPERATION = {", *lines, "};", ""]

    def _plain(self, *, answers: bool) -> Sequence[str]:
        tool = self._tool
        if not answers:
            return [f"await {self._send('')};", "return { ok: true };"]
        if tool.wrap:
            held = f'z.infer<typeof Result>["{tool.wrap}"]'
            return [f"return {{ {member(tool.wrap)}: await {self._send(held)} }};"]
        return [f"return {self._send('z.infer<typeof Result>')};"]

    def _pages(self, pagination: Pagination) -> Sequence[str]:
        tool = self._tool
        items, held = list_variable(tool), f'z.infer<typeof Result>["{tool.wrap}"]'
        result = tool.wrap if items == tool.wrap else f"{tool.wrap}: {items}"
        report = _broken(_progress(pagination, tool.wrap, items), 24)
        return [
            f"const {items}{self._type(held)} = [];",
            f"let next{self._type('unknown')} = {_first(pagination)};",
            "for (let page = 1; ; page += 1) {",
            *_indented(f"const answer = await {self._send('', pagination)};"),
            f"  {items}.push(...{self._items(pagination)});",
            *_indented(f"context?.reportProgress({report});"),
            f"  next = {_next(pagination, items)};",
            f"  if (next === undefined || page >= {MAX_PAGES}) {{",
            f"    return {{ {result}, {HAS_MORE}: next !== undefined }};",
            "  }",
            "}",
        ]

    def _items(self, pagination: Pagination) -> str:
        found = f"({_at(pagination.items)} ?? [])"
        if not pagination.node:
            return found
        return f"{found}.map((edge{self._type('any')}) => edge.{pagination.node})"

    def _send(self, result: str, pagination: Pagination | None = None) -> str:
        """Return the expression that sends the request and returns what it answers."""
        tool = self._tool
        operation = tool.operation
        signal = "signal: context?.signal"
        kind = f"<{result}>" if result and self._is_ts else ("<any>" if self._is_ts else "")
        link = pagination is not None and pagination.kind == "link"
        path = path_source(tool)
        query = _members(self._values("query"), tool.inputs.query, tool.inputs)
        payload = _members(self._values("payload"), tool.inputs.payload, tool.inputs)
        if pagination is not None and not link:
            into = payload if pagination.in_payload else query
            into.append(f"{member(pagination.member)}: next")
        if operation.style == "graphql":
            method = literal(operation.method)
            has_variables = any(each.payload is not None for each in operation.works)
            variables = _object(payload) if has_variables else "undefined"
            return f"graphql{kind}({method}, {path}, OPERATION, {variables}, context?.signal)"
        if operation.style == "rpc":
            params = "body" if self._values("body") else _object(payload)
            return f"call{kind}({path}, {literal(operation.name)}, {params}, context?.signal)"
        first_only = "next === undefined ? {} : {{}}" if link else "{}"
        options = [f"query: {first_only.format(_object(query))}"] if query else []
        if self._values("body"):
            options.append("body")
        elif payload or any(each.payload is not None for each in operation.works):
            is_form = operation.works[0].is_form
            options.append(f"{'form' if is_form else 'body'}: {_object(payload)}")
        if link and pagination is not None:
            whole = not pagination.next
            path = f"link(next, {path})"
            options += ["withLink: true"] if whole else []
        options += ["ignoreAnswer: true"] if tool.ignores_answer else []
        start = f"request{kind}({literal(operation.method)}, {path}, "
        options.append(signal)
        return f"{start}{_broken(options, len(start))})"

    def _values(self, place: str) -> Sequence[tuple[str, str]]:
        return [
            (str(each.key), variable(each))
            for each in self._tool.inputs.arguments
            if each.place == place
        ]

    def _type(self, text: str) -> str:
        return f": {text}" if self._is_ts else ""


def _text(value: Any) -> str:
    """Return a JSON value as JavaScript; a string of several lines as it is."""
    if not isinstance(value, str) or "\n" not in value:
        return literal(value)
    return f"`{_in_template(value)}`"


def _in_template(text: str) -> str:
    """Return a text as it is written in a template literal."""
    return text.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")


def module_source(
    tool: PlannedTool, imports: str, above: Sequence[str], body: Sequence[str], *, has_pages: bool
) -> str:
    """Return the module that defines a tool.

    Args:
        tool: The tool.
        imports: What it imports of the plugin.
        above: The lines that define its schema, and more.
        body: The statements of its handler.
        has_pages: Whether it reads page after page.
    """
    names = [
        each.name if each.name == variable(each) else f"{each.name}: {variable(each)}"
        for each in tool.inputs.arguments
    ]
    names += [MAX_PAGES] if has_pages else []
    lines = [
        'import { defineTool } from "@opentabs-dev/plugin-sdk";',
        'import { z } from "zod";',
        imports,
        "",
        *above,
        "",
        f"export const {export_name(tool.name)} = defineTool({{",
        f"  name: {literal(tool.name)},",
        f"  description: {literal(tool.description)},",
        f"  icon: {literal(tool.icon)},",
        *(["  annotations: { readOnlyHint: true },"] if tool.is_read else []),
        *_input(tool, has_pages=has_pages),
        "  output: Result,",
        f"  async handle({_object(names) if names else '_params'}, context) {{",
        *(f"    {line}" for text in body for line in text.split("\n")),
        "  },",
        "});",
    ]
    return "\n".join(lines) + "\n"


def variable(given: Input) -> str:
    """Return the name of the variable that holds an argument, which is not one of a handler's."""
    return f"{given.name}_" if given.name in _LOCALS else given.name


def list_variable(tool: PlannedTool) -> str:
    """Return the name of the variable that holds a tool's list, which no other variable has."""
    taken = {*_LOCALS, *(variable(each) for each in tool.inputs.arguments)}
    return tool.wrap if tool.wrap not in taken else unique(camel("all", tool.wrap), taken)


def _input(tool: PlannedTool, *, has_pages: bool) -> Sequence[str]:
    lines = [f"    {member(each.name)}: {argument(each, 4)}," for each in tool.inputs.arguments]
    if has_pages:
        lines.append(
            f"    {MAX_PAGES}: z.int().min(1).max({_MOST_PAGES}).default({_PAGES})"
            '.describe("How many pages to read at most"),'
        )
    return ["  input: z.object({", *lines, "  }),"] if lines else ["  input: z.object({}),"]


def path_source(tool: PlannedTool) -> str:
    """Return the expression for the URL that a tool sends its request to."""
    by_index = {each.key: variable(each) for each in tool.inputs.arguments if each.place == "path"}
    recorded = urlsplit(tool.operation.samples[0].request.url).path.split("/")[1:]
    parts = [
        f"${{encodeURIComponent({by_index[index]})}}" if index in by_index else escaped(segment)
        for index, segment in enumerate(recorded)
    ]
    path, origin = "/".join(parts), tool.operation.origin
    return f"`{_in_template(origin)}/{path}`" if by_index else literal(f"{origin}/{path}")


def _indented(text: str) -> Sequence[str]:
    return [f"  {line}" for line in text.split("\n")]


def _broken(members: Sequence[str], before: int) -> str:
    """Return an object on one line if it fits there, else with a member on each line."""
    text = _object(members)
    if before + len(text) <= _WIDTH:
        return text
    return "\n".join(["{", *(f"  {each}," for each in members), "}"])


def _members(
    given: Sequence[tuple[str, str]], fixed: Mapping[str, Any], inputs: Inputs
) -> list[str]:
    values = {
        **{name: literal(value) for name, value in fixed.items()},
        **{name: _NOW[unit] for name, unit in inputs.times.items() if name in fixed},
        **{name: f"await tokens.{it}()" for name, it in inputs.tokens.items() if name in fixed},
    }
    found = [f"{member(name)}: {value}" for name, value in values.items()]
    return found + [
        name if name == variable and is_identifier(name) else f"{member(name)}: {variable}"
        for name, variable in given
    ]


def _object(members: Sequence[str]) -> str:
    return f"{{ {', '.join(members)} }}" if members else "{}"


def escaped(text: str, *, safe: str = "%@:!$&'()*+,;=~") -> str:
    """Return a part of a recorded URL as it may be in a template literal.

    Args:
        text: The part.
        safe: The characters that are left as they are, besides letters, digits and `_.-~`.
    """
    return quote(text, safe=safe).replace("${", "%24{")


def _at(path: Path, of: str = "answer") -> str:
    """Return the expression for a member of an answer."""
    text = of
    for name in path:
        text += f"?.{name}" if is_identifier(name) else f"?.[{literal(name)}]"
    return text


def _first(pagination: Pagination) -> str:
    return literal(pagination.first[0]) if pagination.first else "undefined"


def _progress(pagination: Pagination, what: str, items: str) -> Sequence[str]:
    message = f"message: `${{{items}.length}} {what}`"
    if pagination.total and not pagination.pages:
        return [f"progress: {items}.length", f"total: {_at(pagination.total)}", message]
    total = [f"total: {_at(pagination.pages)}"] if pagination.pages else []
    return ["progress: page", *total, message]


def _next(pagination: Pagination, items: str) -> str:
    """Return the expression for what the next request sends; undefined after the last page."""
    if pagination.kind == "link":
        return f"{_at(pagination.next)} || undefined" if pagination.next else "answer?.link"
    if pagination.kind == "cursor":
        following = f"{_at(pagination.next)} || undefined"
        if not pagination.more:
            return following
        return f"{_at(pagination.more)} === false ? undefined : {following}"
    start = int(pagination.first[0]) if pagination.first else int(pagination.kind == "page")
    step = "page" if pagination.kind == "page" else f"{items}.length"
    following = f"{start} + {step}" if start else step
    if pagination.more:
        is_last = f"!{_at(pagination.more)}"
    elif pagination.pages:
        is_last = f"page >= ({_at(pagination.pages)} ?? 0)"
    elif pagination.total:
        is_last = f"{items}.length >= ({_at(pagination.total)} ?? 0)"
    else:
        is_last = f"!{_at(pagination.items)}?.length"
    return f"{is_last} ? undefined : {following}"
