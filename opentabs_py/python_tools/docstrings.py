"""Extract the parts of a docstring meant for callers, in Google, NumPy or Sphinx style."""

from dataclasses import dataclass, field
from textwrap import indent
from typing import Any, Final

from griffe import Docstring as GriffeDocstring
from griffe import DocstringSection, DocstringSectionKind, GoogleOptions, PerStyleOptions

_QUIET: Final = PerStyleOptions(
    google=GoogleOptions(warnings=False), numpy={"warnings": False}, sphinx={"warnings": False}
)
_ARGUMENTS: Final = (DocstringSectionKind.parameters, DocstringSectionKind.other_parameters)


@dataclass(frozen=True, slots=True)
class Docstring:
    """A parsed docstring.

    Attributes:
        text: Everything except sections for programmers, such as Raises and Returns.
        arguments: The description of each argument.
    """

    text: str = ""
    arguments: dict[str, str] = field(default_factory=dict[str, str])


def parse_docstring(docstring: str | None) -> Docstring:
    """Parse a docstring; one in no known style is all text."""
    parsed = GriffeDocstring(docstring or "", lineno=1)
    sections = parsed.parse("auto", default="google", per_style_options=_QUIET)
    arguments = {
        argument.name.lstrip("*"): " ".join(argument.description.split())
        for section in sections
        if section.kind in _ARGUMENTS
        for argument in section.value
    }
    texts = [_text(section) for section in sections]
    return Docstring("\n\n".join(text for text in texts if text), arguments)


def _text(section: DocstringSection) -> str:
    """Return a section as written if it is meant for callers."""
    value: Any = section.value
    match section.kind:
        case DocstringSectionKind.text:
            return str(value).strip()
        case DocstringSectionKind.examples:
            heading = f"Examples: {section.title}" if section.title else "Examples:"
            return _under(heading, "\n\n".join(text for _, text in value))
        case DocstringSectionKind.admonition:
            kind, title = value.kind.replace("-", " "), section.title or value.kind
            # Without a title, griffe returns the kind as it was written.
            is_kind = title.lower().startswith(kind)
            heading = f"{title}:" if is_kind else f"{kind.capitalize()}: {title}"
            return _under(heading, value.contents)
        case _:
            return ""


def _under(heading: str, text: str) -> str:
    return f"{heading}\n{indent(text, '    ')}"
