"""Read HTML as browsers do, however malformed it is."""

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
