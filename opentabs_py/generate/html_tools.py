"""Tools for a site without an API: they read its pages and send its forms."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

from opentabs_py.core.recording.replay import redirect
from opentabs_py.core.shapes.shape import Shape, shape_of
from opentabs_py.core.sites.origins import resolve_link
from opentabs_py.generate.flows import Flows
from opentabs_py.generate.forms import Form, FormField, forms_of
from opentabs_py.generate.inputs import Input, Inputs, inputs_of, is_integer
from opentabs_py.generate.listings import PageListing, details, find_listing, heading
from opentabs_py.generate.markup import Element, parse
from opentabs_py.generate.names import (
    HAS_MORE,
    camel,
    is_identifier,
    list_member,
    unique,
    words_of,
)
from opentabs_py.generate.operations import Operation
from opentabs_py.generate.plan import (
    ICONS,
    PlannedTool,
    describe,
    is_meant,
    names_for,
    noun_of,
)
from opentabs_py.generate.samples import Sample

NOTICES: Final = ("flash", "notice", "alert", "error", "success", "message")
_ROLES: Final = ("alert", "status")
_SKIPPED: Final = frozenset({"password", "file"})


@dataclass(frozen=True, slots=True)
class HtmlTool(PlannedTool):
    """A tool that reads a page, or sends a form and reads the page that answers it.

    Attributes:
        listing: The list that the page shows; None if it shows none.
        has_details: Whether it shows values with labels.
        has_next: Whether a link leads on to a further page of the list.
        form: The form that is sent; None for a page that is only read.
        fixed: What the form's button sends.
        pages: The page that each request ended at, by the request's URL and body.
    """

    listing: PageListing | None = None
    has_details: bool = False
    has_next: bool = False
    form: Form | None = None
    fixed: Mapping[str, str] = field(default_factory=dict[str, str])
    pages: Mapping[tuple[str, bytes], Element] = field(
        default_factory=dict[tuple[str, bytes], Element]
    )

    def answers(self, sample: Sample) -> bool:
        """Return whether a request was answered with a page."""
        return _key(sample) in self.pages

    def page_of(self, sample: Sample) -> Element:
        """Return the page that answered a request."""
        return self.pages[_key(sample)]

    def read_on(self, sample: Sample) -> tuple[Any, int]:
        """Return the result of reading on from a page as far as pages are known, and how many."""
        value = dict(self.value_of(sample))
        known = {url: page for (url, body), page in self.pages.items() if not body}
        known.pop(sample.request.url, None)
        page, url, read = self.page_of(sample), sample.request.url, 1
        while (link := next_page(page)) is not None:
            url = resolve_link(url, link)
            if url not in known:
                break  # it was not recorded, or leads in a circle
            page = known.pop(url)
            read += 1
            if self.listing is not None:
                value[self.wrap] = [*value[self.wrap], *self.listing.rows(page)]
        return {**value, HAS_MORE: link is not None}, read

    def value_of(self, sample: Sample) -> Any:
        """Return the result of the tool for a page."""
        page = self.page_of(sample)
        if self.form is not None:
            return {"title": heading(page), "notice": notice(page)}
        value: dict[str, Any] = {"title": heading(page)}
        if self.listing is not None:
            value[self.wrap] = self.listing.rows(page)
        if self.has_details:
            value["details"] = details(page)
        if self.has_next:
            value[HAS_MORE] = next_page(page) is not None
        return value


def notice(page: Element) -> str | None:
    """Return what a page says about what was just done; None if it says nothing."""
    for element in page.walk():
        is_one = element.attributes.get("role") in _ROLES or {*element.classes} & {*NOTICES}
        if is_one and element.text:
            return element.text
    return None


def next_page(page: Element) -> str | None:
    """Return the URL of the link to a further page of a list; None if there is none."""
    for element in page.walk():
        if element.tag != "a" or "href" not in element.attributes:
            continue
        above = element.parent.classes if element.parent is not None else ()
        if "next" in (*element.attributes.get("rel", "").split(), *element.classes, *above):
            return element.attributes["href"]
    return None


def plan_pages(
    operations: Sequence[Operation],
    samples: Sequence[Sample],
    flows: Flows,
    replaced: Collection[str],
    chosen: Sequence[str],
) -> Sequence[HtmlTool]:
    """Return the tools for the pages of a site.

    Args:
        operations: What the site offers.
        samples: All requests.
        flows: Where ids come from.
        replaced: What the recording has in place of secrets.
        chosen: Which pages, such as `GET /tickets`; if none, all that show lists or values.
    """
    trees = {_key(each): parse(each.page) for each in samples if each.page}
    forms = [
        form
        for each in samples
        if each.page
        for form in forms_of(trees[_key(each)], each.request.url)
    ]
    tools: list[HtmlTool] = []
    for operation in operations:
        if operation.style != "page":
            continue
        if chosen and not any(is_meant(operation, each) for each in chosen):
            continue
        if operation.method == "GET" and all(redirect(each.exchange) for each in operation.works):
            continue  # it is another name of a page
        make = _reading_tool if operation.method == "GET" else _sending_tool
        taken = {tool.name for tool in tools}
        tool = make(operation, _ends(operation, samples, trees), forms, flows, replaced)
        if tool is not None:
            name = next(each for each in (*names_for(operation), unique(tool.name, taken))
                        if each not in taken)  # fmt: skip
            tools.append(replace(tool, name=name, description=describe(operation, name)))
    return tools


def _reading_tool(
    operation: Operation,
    pages: Mapping[tuple[str, bytes], Element],
    forms: Sequence[Form],
    flows: Flows,
    replaced: Collection[str],
) -> HtmlTool | None:
    """Return the tool that reads a page; None if there is nothing to read."""
    shown = [page for page in pages.values() if not _asks_password(page)]
    if not shown:
        return None
    listing = find_listing(shown)
    has_details = any(details(page) for page in shown)
    if listing is None and not has_details:
        return None
    has_next = listing is not None and any(next_page(page) is not None for page in shown)
    samples = [each for each in operation.works if _key(each) in pages]
    further = {
        resolve_link(each.request.url, link)
        for each in samples
        if (link := next_page(pages[_key(each)])) is not None
    }
    first = [each for each in samples if each.request.url not in further] or samples
    inputs = inputs_of(replace(operation, samples=first), flows, None, replaced)
    operation = replace(
        operation, samples=[each for each in operation.samples if each in first or not each.works]
    )
    fields = {
        each.name: each
        for form in forms
        if form.method == "GET" and form.action == "/" + "/".join(s or "" for s in operation.path)
        for each in form.fields
    }
    inputs.arguments = [_labelled(each, fields.get(str(each.key))) for each in inputs.arguments]
    name = next(iter(names_for(operation)))
    others = ("title", "notice", "details")
    wrap = "" if listing is None else list_member(noun_of(operation, name), others)
    tool = HtmlTool(
        name, "", ICONS.get(name.partition("_")[0], "eye"), operation, inputs, None, (), wrap,
        listing=listing, has_details=has_details, has_next=has_next, pages=pages,
    )  # fmt: skip
    return replace(tool, result=shape_of(*(tool.value_of(each) for each in samples)))


def _sending_tool(
    operation: Operation,
    pages: Mapping[tuple[str, bytes], Element],
    forms: Sequence[Form],
    flows: Flows,
    replaced: Collection[str],
) -> HtmlTool | None:
    """Return the tool that sends a form; None if it is not one that a tool should send."""
    samples = [each for each in operation.works if each.payload is not None and _key(each) in pages]
    if not samples:
        return None
    path = urlsplit(samples[0].request.url).path
    alike = [each for each in forms if (each.action, each.method) == (path, "POST")]
    form = next((each for each in alike if each.is_of(samples[0].payload or {})), None)
    form = form or next(iter(alike), None)
    if form is None or form.is_multipart or any(each.kind in _SKIPPED for each in form.fields):
        return None
    inputs = Inputs(
        [each for each in inputs_of(operation, flows, None, replaced).arguments
         if each.place in ("path", "query")]
    )  # fmt: skip
    beside = [each for each in alike if each.page == form.page]
    for given in form.fields:
        # Which entry of a list is meant, where each has the same form.
        names_entry = given.is_fixed and any(
            (other := each.field(given.name)) is not None and other.value != given.value
            for each in beside
        )
        if given.kind != "hidden" or names_entry:
            known = replace(given, is_required=True) if names_entry else given
            inputs.arguments.append(_field_input(known, samples, inputs.taken))
    fixed = {
        name: str(value)
        for name, value in (samples[0].payload or {}).items()
        if form.field(name) is None
    }
    name = next(iter(names_for(operation)))
    tool = HtmlTool(
        name, "", ICONS.get(name.partition("_")[0], "send"), operation, inputs, None,
        form=form, fixed=fixed, pages=pages,
    )  # fmt: skip
    return replace(tool, result=shape_of(*(tool.value_of(each) for each in samples)))


def _field_input(given: FormField, samples: Sequence[Sample], taken: Collection[str]) -> Input:
    values = [each.payload[given.name] for each in samples
              if each.payload is not None and given.name in each.payload]  # fmt: skip
    may_be_number = given.kind in ("number", "range", "hidden")
    is_number = may_be_number and all(is_integer(each) for each in values)
    if given.choices:
        shape = _shape_of_choice(given)
    else:
        shape = shape_of(*(map(int, values) if is_number else values)) if values else shape_of("")
    name = given.name if is_identifier(given.name) else camel(*words_of(given.name))
    return Input(
        unique(name, taken),
        "payload",
        given.name,
        shape,
        is_required=given.is_required,
        choices=given.choices,
        label=given.label,
    )


def _labelled(given: Input, known: FormField | None) -> Input:
    if known is None:
        return given
    labelled = replace(given, label=known.label)
    if given.default or not known.choices:
        return labelled
    return replace(labelled, choices=known.choices, shape=_shape_of_choice(known))


def _shape_of_choice(given: FormField) -> Shape:
    """Return the shape of the options that are chosen of a field."""
    return shape_of([*given.choices]) if given.is_multiple else shape_of(*given.choices)


def _ends(
    operation: Operation, samples: Sequence[Sample], trees: Mapping[tuple[str, bytes], Element]
) -> Mapping[tuple[str, bytes], Element]:
    """Return the pages that an operation's requests ended at, after their redirects."""
    found: dict[tuple[str, bytes], Element] = {}
    for sample in operation.works:
        to = redirect(sample.exchange)
        end = sample
        if to is not None:
            after = [each for each in samples if each.exchange.started >= sample.exchange.started]
            end = next((each for each in after if each.request.url == to and each.page), sample)
        if (tree := trees.get(_key(end))) is not None:
            found[_key(sample)] = tree
    return found


def _asks_password(page: Element) -> bool:
    return any(
        each.tag == "input" and each.attributes.get("type") == "password" for each in page.walk()
    )


def _key(sample: Sample) -> tuple[str, bytes]:
    return sample.request.url, sample.request.body
