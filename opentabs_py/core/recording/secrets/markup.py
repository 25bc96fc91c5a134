"""Find the secrets of HTML and XML."""

from urllib.parse import unquote

from opentabs_py.core.markup import MarkupReader
from opentabs_py.core.recording.secrets.found import FoundSecrets
from opentabs_py.core.recording.secrets.values import ValueSearch


def search_markup(text: str, secrets: FoundSecrets, values: ValueSearch) -> None:
    """Collect the secrets of a page's fields, `meta` elements and scripts, or of XML's elements."""
    _Page(secrets, values).feed(text)


class _Page(MarkupReader):
    def __init__(self, secrets: FoundSecrets, values: ValueSearch) -> None:
        super().__init__()
        self._secrets = secrets
        self._values = values
        self._is_script = False
        self._field: str | None = None  # the name of what is written in what follows

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_script = tag == "script"
        element = tag.rpartition(":")[2]  # without its namespace
        self._field = element if self._secrets.holds(element) == "secret" else None
        attributes = {name: value or "" for name, value in attrs}
        if tag == "meta":
            name = attributes.get("name") or attributes.get("property") or ""
            self._values.search_member(name, attributes.get("content", ""))
        elif tag in ("input", "button", "textarea"):
            name = attributes.get("name") or attributes.get("id") or ""
            self._values.search_member(name, attributes.get("value", ""))
            if tag == "textarea":
                self._field = name
            if attributes.get("type") == "password":
                password = attributes.get("value", "")
                self._secrets.add(password, "token", name or "password", always=True)
        for name, value in attributes.items():
            if name.startswith("data-"):
                self._values.search_member(name.removeprefix("data-"), value)
            elif name == "href" and value.startswith("tel:"):
                self._values.search_member("tel", unquote(value[4:]))

    def handle_data(self, data: str) -> None:
        if self._is_script:
            self._is_script = False
            self._values.search_text(data)
        elif self._field is not None:
            self._values.search_member(self._field, data)
            self._field = None
