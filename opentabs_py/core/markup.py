"""Read HTML as browsers do, however malformed it is."""

from html import unescape
from html.parser import HTMLParser


class MarkupReader(HTMLParser):
    """A parser of HTML that no declaration stops.

    `html.parser` raises AssertionError for some, such as `<![foo[x]]>`, and skips to the end of
    others. To browsers they are comments that end with the next `>`, as is CDATA in HTML.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def parse_html_declaration(self, i: int) -> int:
        """Read what begins with `<!`; return where it ends, or -1 if it does not."""
        if self.rawdata.startswith("<![", i):
            return self.parse_bogus_comment(i)
        return super().parse_html_declaration(i)

    def close(self) -> None:
        """Read what is left as text if no tag in it ends; `html.parser` searches it for each."""
        left = self.rawdata
        if left.startswith("<") and ">" not in left and self.cdata_elem is None:
            self.rawdata = ""
            self.handle_data(unescape(left))
        super().close()
