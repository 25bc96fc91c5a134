"""The forms of a page: what one fills in, and what the page fills in itself."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from opentabs_py.core.sites.origins import resolve_link
from opentabs_py.generate.markup import Element

_MOST_FIELDS: Final = 200  # of a form; each may cost a search of it
_BUTTONS: Final = frozenset({"submit", "button", "image", "reset"})
_TOKEN: Final = re.compile(r".*(csrf|xsrf|token|nonce|authenticity|verification|__viewstate).*")


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form.

    Attributes:
        name: What is sent.
        kind: The type of the input, or `select` or `textarea`.
        label: What the page calls it.
        is_required: Whether it must be filled in.
        choices: The values of its options.
        value: Its value before it is filled in.
        is_multiple: Whether several of its options can be chosen.
    """

    name: str
    kind: str
    label: str = ""
    is_required: bool = False
    choices: Sequence[str] = ()
    value: str = ""
    is_multiple: bool = False

    @property
    def is_token(self) -> bool:
        """Whether its value changes each time the page is opened."""
        return self.kind == "hidden" and _TOKEN.fullmatch(self.name.lower()) is not None

    @property
    def is_fixed(self) -> bool:
        """Whether its value is the page's, and the same each time the page is opened."""
        return self.kind == "hidden" and not self.is_token


@dataclass(frozen=True, slots=True)
class Form:
    """A form.

    Attributes:
        page: The URL of its page.
        action: The path that it is sent to.
        method: In capital letters.
        fields: Its fields, without buttons.
        is_multipart: Whether it is sent as `multipart/form-data`.
    """

    page: str
    action: str
    method: str
    fields: Sequence[FormField]
    is_multipart: bool = False

    def is_of(self, sent: Mapping[str, Any]) -> bool:
        """Return whether the form was sent, by the values that its page fills in."""
        return all(sent.get(each.name) == each.value for each in self.fields if each.is_fixed)

    def field(self, name: str) -> FormField | None:
        """Return the field of a name; None if there is none, as for a button."""
        return next((each for each in self.fields if each.name == name), None)


def forms_of(page: Element, url: str) -> Sequence[Form]:
    """Return the forms of a page."""
    labels = {
        each.attributes["for"]: each.text
        for each in page.walk()
        if each.tag == "label" and each.attributes.get("for")
    }
    return [
        Form(
            url,
            urlsplit(resolve_link(url, element.attributes.get("action", ""))).path,
            element.attributes.get("method", "get").upper(),
            [*islice(_fields(element, labels), _MOST_FIELDS)],
            "multipart" in element.attributes.get("enctype", ""),
        )
        for element in page.walk()
        # Browsers have no forms in others.
        if element.tag == "form" and all(each.tag != "form" for each in element.ancestors)
    ]


def _fields(form: Element, labels: Mapping[str, str]) -> Iterator[FormField]:
    seen: set[str] = set()
    for element in form.walk():
        name = element.attributes.get("name", "")
        kind = (
            element.attributes.get("type", "text").lower()
            if element.tag == "input"
            else element.tag
        )
        if element.tag not in ("input", "select", "textarea") or not name or kind in _BUTTONS:
            continue
        if name in seen:
            continue
        seen.add(name)
        around = next((each for each in element.ancestors if each.tag == "label"), None)
        label = labels.get(element.attributes.get("id", ""), "")
        if not label and around is not None:
            label = " ".join(
                "".join(each for each in around.children if isinstance(each, str)).split()
            )
        choices = _choices(element, form, kind, name)
        yield FormField(
            name,
            kind,
            (label or element.attributes.get("placeholder", "")).rstrip(":* "),
            "required" in element.attributes,
            choices,
            element.attributes.get("value", ""),
            "multiple" in element.attributes or (kind == "checkbox" and len(choices) > 1),
        )


def _choices(element: Element, form: Element, kind: str, name: str) -> Sequence[str]:
    if kind == "select":
        options = [each for each in element.walk() if each.tag == "option"]
        return [value for each in options if (value := each.attributes.get("value", each.text))]
    if kind in ("radio", "checkbox"):
        return [
            each.attributes.get("value", "on")
            for each in form.walk()
            if each.tag == "input" and each.attributes.get("name") == name
        ]
    return []
