"""Marks by which a page shows that a data portal made it, looked for in its tags.

A page without them costs a few searches; what a mark suggests is put to the test by the portal's harvester.
"""

import re

from selectolax.lexbor import LexborHTMLParser

from tamias.analyse.markup.page import MarkupPage
from tamias.model.errors import UrlError
from tamias.model.finding import Links
from tamias.model.url import authority, resolve

_GENERATORS = {"ckan": "ckan", "dkan": "dkan", "udata": "udata", "opendatasoft": "opendatasoft"}
"""The first word of `<meta name=generator>`; Drupal's own says nothing of data."""

_MARKS = (
    (b"hubcdn.arcgis.com", "arcgis"),
    (b"/dkan/", "dkan"),
    (b"dv_rebind_bootstrap_ui", "dataverse"),
    (b"data-invenio-config", "zenodo"),
    (b'ng-app="ods.', "opendatasoft"),
    (b"udata-front", "udata"),
)
_SOCRATA = b"window.socrata"
"""Stands in a script at the beginning."""
_BEGINNING = 16_384
_CKAN_ROOT = "body[data-site-root]"
_WORD = re.compile(r"[a-z]+")


def portal_links(page: MarkupPage, parsed: LexborHTMLParser, generators: list[str]) -> list[Links]:
    """The root of the portal that made a page, with its kind; usually none."""
    kinds = dict.fromkeys(kind for mark, kind in _MARKS if mark in page.markup)
    if _SOCRATA in page.data[:_BEGINNING]:
        kinds["socrata"] = None
    for generator in generators:
        word = _WORD.match(generator.strip().lower())
        if word and word[0] in _GENERATORS:
            kinds[_GENERATORS[word[0]]] = None
    return [Links([_root(page, parsed, kind)], page.url, kind) for kind in kinds]


def _root(page: MarkupPage, parsed: LexborHTMLParser, kind: str) -> str:
    """The top of the host; a CKAN further down says where, and is believed of its own host."""
    body = parsed.css_first(_CKAN_ROOT) if kind == "ckan" else None
    if body is None:
        return "/"
    try:
        root = resolve((body.attrs.get("data-site-root") or "/").strip(), page.url)
        return root if authority(root) == authority(page.url) else "/"
    except UrlError:
        return "/"
