"""Recognise the challenge pages of bot protection, by marks with their sources. Pure.

A mark is a header, or an element that only a challenge page has.
"""

import re
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser

from tamias.analyse.chunks import RefusedError
from tamias.analyse.html.analyser import check_nesting
from tamias.content.formats import HTML
from tamias.model.capture import Capture
from tamias.settings import AnalyseSettings


class HeaderMark(NamedTuple):
    """A response header that only a challenge or a block has."""

    wall: str
    header: str
    value: re.Pattern[str]
    source: str


class PageMark(NamedTuple):
    """An element of a page, found by a selector and how its text begins.

    `word` stands in the bytes of such a page, in lower case: most pages need no second look.
    """

    wall: str
    word: bytes
    selector: str
    text: re.Pattern[str]
    source: str


_ANY = re.compile("")
_CLOUDFLARE = "https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/"
_ANUBIS = "https://github.com/TecharoHQ/anubis/blob/main/web/index.templ"
_IMPERVA = "https://docs.imperva.com/bundle/cloud-application-security/page/more/error-codes.htm"
_DATADOME = "https://docs.datadome.co/reference/validate-request"
_AKAMAI = "https://techdocs.akamai.com/bot-manager/docs/handle-challenges"
_AWS = "https://docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge-how-it-works.html"
_SUCURI = "https://docs.sucuri.net/website-firewall/troubleshooting/"

HEADERS = (
    HeaderMark("Cloudflare", "cf-mitigated", re.compile("challenge"), f"{_CLOUDFLARE}detect-response/"),
    HeaderMark("DataDome", "x-dd-b", re.compile("[1-9]"), _DATADOME),
    HeaderMark("AWS WAF", "x-amzn-waf-action", re.compile("challenge|captcha"), _AWS),
    HeaderMark("Sucuri", "x-sucuri-block", re.compile("."), _SUCURI),
)

PAGES = (
    PageMark("Anubis", b"anubis_challenge", "script#anubis_challenge", _ANY, _ANUBIS),
    PageMark("Anubis", b"anubis_version", "script#anubis_version", _ANY, _ANUBIS),
    PageMark(
        "Cloudflare", b"_cf_chl_opt", "script",
        re.compile(r"\s*(?:\(function\s*\(\)\s*\{\s*)?window\._cf_chl_opt\s*="), _CLOUDFLARE,
    ),
    PageMark(
        "Cloudflare", b"cf-error-details", "div#cf-error-details",
        re.compile("(?is).*(?:blocked|banned|denied)"),
        "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-1xxx-errors/",
    ),
    PageMark("Incapsula", b"_incapsula_resource", 'iframe[src*="_Incapsula_Resource"]', _ANY, _IMPERVA),
    PageMark(
        "Incapsula", b"incapsula incident id", "body",
        re.compile(r"\s*Request unsuccessful\. Incapsula incident ID: \d"), _IMPERVA,
    ),
    PageMark(
        "DataDome", b"captcha-delivery.com", "script",
        re.compile(r"\s*var dd\s*=\s*\{[^}]*captcha-delivery\.com"), _DATADOME,
    ),
    PageMark("DataDome", b"captcha-delivery.com", 'iframe[src*=".captcha-delivery.com/"]', _ANY, _DATADOME),
    PageMark(
        "Akamai", b"access denied", "body",
        re.compile(r"\s*Access Denied\s.*Reference\s#[0-9a-f]+\.[0-9a-f.]+", re.DOTALL),
        "https://community.akamai.com/customers/s/article/Why-is-Akamai-blocking-me",
    ),
    PageMark("Akamai", b"sec-if-cpt-container", "#sec-if-cpt-container", _ANY, _AKAMAI),
    PageMark("Akamai", b"/_sec/cp_challenge/", 'script[src*="/_sec/cp_challenge/"]', _ANY, _AKAMAI),
    PageMark(
        "AWS WAF", b"gokuprops", "script",
        re.compile(r"(?:\s*window\.\w+\s*=[^;\"']*;)*\s*window\.gokuProps\s*="), _AWS,
    ),
    PageMark("Sucuri", b"sucuri website firewall", "title", re.compile("Sucuri WebSite Firewall"), _SUCURI),
    PageMark(
        "Sucuri", b"sucuri_cloudproxy_js", "script",
        re.compile(r"\s*var [^\"'<&]*\bsucuri_cloudproxy_js\s*="), _SUCURI,
    ),
)  # fmt: skip


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
