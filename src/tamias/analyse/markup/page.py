"""A page as the extractors see it: its bytes, its address, and one tree for all of them."""

from functools import cached_property

from lxml import etree, html


class Page:
    """One HTML or XHTML page. The tree is made when the first extractor asks for it."""

    def __init__(self, data: bytes, *, url: str, base: str, media_type: str, charset: str | None = None) -> None:
        """`base` is the page's own, `<base href>` applied; `charset` is None where it is UTF-8."""
        self.data = data
        self.url = url
        self.base = base
        self.media_type = media_type
        self.charset = charset

    @cached_property
    def is_xhtml(self) -> bool:
        """Whether the page is XML, and is to be read as such."""
        return self.media_type == "application/xhtml+xml"

    @cached_property
    def tree(self) -> etree._Element:
        """The root element: of an HTML parser that mends everything, or of an XML parser that mends what it can.

        In XHTML names carry their namespace, `{http://www.w3.org/1999/xhtml}div`; in HTML they do not.
        """
        encoding = self.charset or "utf-8"
        if self.is_xhtml:
            xml = etree.XMLParser(
                recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
            )
            root = etree.fromstring(self.data, xml)
            if root is not None:
                return root
        parser = html.HTMLParser(encoding=encoding, huge_tree=False, no_network=True)
        root = html.document_fromstring(self.data or b"<html/>", parser=parser, ensure_head_body=True)
        assert isinstance(root, etree._Element)
        return root
