"""The marks of walls, each with its source: a header, or an element that only a challenge page has."""

import re
from typing import NamedTuple


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
