"""Recognise the challenge pages of bot protection. Pure."""

import re

from selectolax.lexbor import LexborHTMLParser

from tamias.analyse.chunks import RefusedError
from tamias.analyse.html.analyser import check_nesting
from tamias.content.formats import HTML
from tamias.features.walls.table import HEADERS, PAGES, PageMark
from tamias.model.capture import Capture
from tamias.settings import AnalyseSettings

STATUSES = frozenset({200, 202, 403, 405, 429, 503})
MOST_BYTES = 256 * 1024
"""Challenge pages are smaller."""
MOST_TEXT = 2000
"""Characters that a reader sees of one, without its scripts; an article about walls has more to say."""
_DATA = re.compile(rb"application/ld\+json|\sitemscope|\stypeof\s*=|\sproperty\s*=")
_JSON_CHALLENGE = re.compile(rb'\s*\{\s*"url"\s*:\s*"https://[a-z0-9.-]*captcha-delivery\.com/')
"""DataDome answers with this where JSON is wanted."""


def refuse(capture: Capture) -> str | None:
    """Return the reason to refuse a response that is a wall; None for any other."""
    if not capture.hops or capture.status not in STATUSES:
        return None
    wall = _in_headers(capture) or _in_body(capture)
    return None if wall is None else f"wall: {wall} challenge ({capture.status})"


def _in_headers(capture: Capture) -> str | None:
    last = capture.hops[-1]
    names = {name.lower() for name, _ in last.headers}
    for mark in HEADERS:
        if mark.header in names and mark.value.match((last.header(mark.header) or "").lower()):
            return mark.wall
    return None


def _in_body(capture: Capture) -> str | None:
    body, declared = capture.body or capture.error_body, capture.declared_type or HTML
    if body is None or body.data is None or not 0 < body.size <= MOST_BYTES:
        return None
    if "json" in declared:
        return "DataDome" if _JSON_CHALLENGE.match(body.data) else None
    if "html" not in declared and "plain" not in declared:
        return None
    lowered = body.data.lower()
    marks = [mark for mark in PAGES if mark.word in lowered]
    if not marks or _DATA.search(lowered):
        return None
    return _on_page(body.data, marks)


def _on_page(data: bytes, marks: list[PageMark]) -> str | None:
    try:
        check_nesting(data, AnalyseSettings().html_nesting)
    except RefusedError:
        return None
    page = LexborHTMLParser(data)
    for mark in marks:
        if any(mark.text.match(node.text()) for node in page.css(mark.selector)):
            page.strip_tags(["script", "style", "template", "noscript"])
            text = " ".join(page.body.text().split()) if page.body else ""
            return mark.wall if len(text) <= MOST_TEXT else None
    return None
