"""Write `docs/api.md`: the public API, from its docstrings.

What the packages name in `__all__` is public, and so are those classes' members that do not begin
with an underscore, unless their docstring says that they are for the package itself.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from griffe import (
    Alias,
    Attribute,
    Class,
    DocstringSectionKind,
    Expr,
    ExprName,
    Function,
    GoogleOptions,
    Module,
    Object,
    Parameter,
    ParameterKind,
    load,
)

PACKAGES = {
    "opentabs_py": "Sessions, tools in Python, clients, errors",
    "opentabs_py.testing": "The test kit",
}
HEAD = """\
# Python API

Generated from the docstrings by `make generate`. Everything here is public; everything else may
change. Times are in seconds. Names are imported from the package that heads their section:

```python
from opentabs_py import OpenTabs, tool
from opentabs_py.testing import expect
```
"""
WIDTH = 90
OWN_USE = "For this package's own use."
_STARS = {
    ParameterKind.var_positional: "*",
    ParameterKind.var_keyword: "**",
}
_QUIET: Any = GoogleOptions(warnings=False)
_TABLES = {
    DocstringSectionKind.parameters: "argument",
    DocstringSectionKind.attributes: "attribute",
    DocstringSectionKind.raises: "raises",
}


def api_page() -> str:
    """Return the text of `docs/api.md`."""
    lines = [HEAD]
    places: dict[str, str] = {}
    for path, title in PACKAGES.items():
        package = load(path, docstring_parser="google", resolve_aliases=True)
        assert isinstance(package, Module)
        lines += [f"## `{path}`: {title[0].lower()}{title[1:]}", ""]
        exports = sorted(str(name) for name in package.exports or ())
        for name in exports:
            place = places.setdefault(name, path)
            if place == path:
                lines += _entry(name, package[name])
            else:
                lines += [f"### {name}", "", f"The same as `{place}.{name}`.", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _entry(name: str, found: Object | Alias) -> Iterator[str]:
    found = found.final_target if isinstance(found, Alias) else found
    if isinstance(found, Attribute):  # another name for something public, or a value
        if found.docstring is None:
            raise ValueError(f"{name} is public and has no docstring")
        yield from (f"### {name}", "", found.docstring.value, "")
        return
    yield from (f"### {name}", "", *_signature(name, found), *_text(found))
    if isinstance(found, Class):
        for member in _members(found):
            signature = _signature(member.name, member)
            yield from (f"#### {name}.{member.name}", "", *signature, *_text(member))


def _members(owner: Class) -> list[Function | Attribute]:
    """Return the public methods and properties, in the order of the source."""
    return [
        member
        for member in owner.members.values()
        if not member.name.startswith("_")
        and not (member.docstring and OWN_USE in member.docstring.value)
        and (
            isinstance(member, Function)
            or (isinstance(member, Attribute) and "property" in member.labels)
        )
    ]


def _signature(name: str, found: Object) -> Iterator[str]:
    if isinstance(found, Class) and not _is_created_by_users(found):
        return
    yield from ("```python", _declaration(name, found), "```", "")


def _declaration(name: str, found: Object) -> str:
    if isinstance(found, Attribute):
        return f"{name}: {found.annotation}"
    parameters: list[Parameter] = []
    if isinstance(found, Class | Function):
        hidden = ("self", "cls")
        named = [each for each in found.parameters if each.name not in hidden]
        parameters = [each for each in named if not each.name.startswith("_")]
    before = ""
    if isinstance(found, Function) and "async" in found.labels:
        is_context = any("contextmanager" in str(each.value) for each in found.decorators)
        before = "async with " if is_context else "await "
    answer = f" -> {found.returns}" if isinstance(found, Function) else ""
    given = list(_parameters(parameters))
    whole = f"{before}{name}({', '.join(given)}){answer}"
    if len(whole) <= WIDTH:
        return whole
    return "\n".join([f"{before}{name}(", *(f"    {each}," for each in given), f"){answer}"])


def _is_created_by_users(found: Class) -> bool:
    """Return whether a class says with what it is created; others are returned or raised by us."""
    if "dataclass" in found.labels:
        return True
    sections = [] if found.docstring is None else found.docstring.parse("google", **_QUIET)
    return any(section.kind is DocstringSectionKind.parameters for section in sections)


def _parameters(parameters: list[Parameter]) -> Iterator[str]:
    has_star = False
    for index, each in enumerate(parameters):
        kind = each.kind
        if kind is ParameterKind.var_positional:
            has_star = True
        elif kind is ParameterKind.keyword_only and not has_star:
            has_star = True
            yield "*"
        stars = "" if kind is None else _STARS.get(kind, "")
        kind_of = "" if each.annotation is None else f": {each.annotation}"
        default = "" if each.default is None or stars else f" = {_value(each.default)}"
        yield f"{stars}{each.name}{kind_of}{default}"
        after = parameters[index + 1].kind if index + 1 < len(parameters) else None
        if kind is ParameterKind.positional_only and after is not ParameterKind.positional_only:
            yield "/"


def _value(default: str | Expr) -> str:
    """Return a default; of a constant, its value, for its name says nothing to readers."""
    if isinstance(default, ExprName) and isinstance(default.parent, Object):
        with suppress(KeyError):  # it is of another package
            found = default.parent.modules_collection[default.canonical_path]
            return str(found.value) if isinstance(found, Attribute) else str(default)
    return str(default)


def _text(found: Object) -> Iterator[str]:
    if found.docstring is None:
        return
    for section in found.docstring.parse("google", **_QUIET):
        if section.kind in _TABLES:
            defaults = _defaults(found) if section.kind is DocstringSectionKind.attributes else {}
            more = " default |" if defaults else ""
            yield from (f"| {_TABLES[section.kind]} |{more} |", f"|---|---|{'---|' * bool(more)}")
            for item in section.value:
                name = getattr(item, "name", None) or str(item.annotation)
                default = f" `{defaults[name]}` |" if name in defaults else " |" * bool(more)
                yield f"| `{name}` |{default} {' '.join(item.description.split())} |"
        elif section.kind is DocstringSectionKind.returns:
            yield " ".join(f"Returns: {item.description}" for item in section.value)
        elif section.kind is DocstringSectionKind.yields:
            yield " ".join(f"Yields: {item.description}" for item in section.value)
        elif section.kind is DocstringSectionKind.text:
            yield _fenced(section.value)
        else:
            yield _fenced(str(section.value))
        yield ""


def _defaults(found: Object) -> Mapping[str, str]:
    """Return the defaults of settings, by name; a class of another kind shows its own above."""
    if not isinstance(found, Class) or not any("BaseSettings" in str(each) for each in found.bases):
        return {}
    attributes = {name: each for name, each in found.members.items() if isinstance(each, Attribute)}
    return {
        name: re.sub(r"^Field\(default=(.*?), .*\)$", r"\1", _value(each.value))
        for name, each in attributes.items()
        if each.value is not None and not name.startswith(("_", "model_"))
    }


def _fenced(text: str) -> str:
    """Fence indented code, which is Python."""
    parts = re.split(r"((?:^    .*\n?|^\n(?=    ))+)", text, flags=re.MULTILINE)
    return "".join(map(_fence, parts)).strip()


def _fence(part: str) -> str:
    if not part.lstrip("\n").startswith("    "):
        return part
    code = re.sub(r"(?m)^    ", "", part).strip()
    return f"\n```python\n{code}\n```\n"
