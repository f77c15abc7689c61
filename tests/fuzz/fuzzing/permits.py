"""What sites say of themselves and of us, and addresses. None of these functions may raise."""

import msgspec

from tamias.analyse.links.discovery import discovery_links, json_ld_context, parsed_links
from tamias.features.blocklists.table import BlocklistTable, CollectedEntries, entries, expressions
from tamias.features.ftp.transfer import ftp_address
from tamias.features.warc.cdxj import surt
from tamias.model.errors import UrlError
from tamias.model.url import authority, fetch_url, host, host_key, resolve, url_key
from tamias.model.usage import verdict
from tamias.permit.addresses import forbidden
from tamias.permit.availability import expires_after
from tamias.permit.delay import LONGEST_WAIT_MS, retry_after_ms
from tamias.permit.robots import MOST_SIGNALS, MOST_SITEMAPS, Rules, parse
from tamias.permit.signals import MOST_RULES, TdmRule, signals_of, tdm_file_signals, tdm_rules
from tamias.permit.signals import MOST_SIGNALS as MOST_OF_A_CAPTURE

PATHS = ("/", "/robots.txt", "/a/b?c=d", "/%7Ejo/caf%C3%A9", "http://example.org/x*y$")
NOW = 1_700_000_000_000


def robots(data: bytes) -> None:
    """Every path gets a verdict, and rules that were kept give the same one."""
    rules = parse(data)
    assert len(rules.sitemaps) <= MOST_SITEMAPS
    assert len(rules.signals) <= MOST_SIGNALS
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(rules), type=Rules)
    for path in PATHS:
        assert kept.verdict(path) == rules.verdict(path)
    assert rules.verdict("/robots.txt").allowed
    for _ in signals_of((), (), rules.signals):
        pass


def tdm(data: bytes) -> None:
    """tdmrep.json."""
    rules = tdm_rules(data)
    assert len(rules) <= MOST_RULES
    assert msgspec.json.decode(msgspec.json.encode(rules), type=tuple[TdmRule, ...]) == rules
    for path in PATHS:
        assert len(tdm_file_signals(rules, path)) <= 2


def signals(data: bytes) -> None:
    """Headers and metas, a line each, named in turn; and their verdict."""
    names = ("X-Robots-Tag", "Robots-Tag", "Content-Usage", "Content-Signal", "TDM-Reservation", "TDM-Policy")
    lines = data.decode("latin-1").split("\n")
    headers = [(names[at % len(names)], line) for at, line in enumerate(lines)]
    metas = [(("robots", "tamias", "tdm-policy")[at % 3], line) for at, line in enumerate(lines)]
    found = signals_of(headers, metas, [("content-usage", line) for line in lines])
    assert len(found) <= MOST_OF_A_CAPTURE
    verdict(found)


def waiting(data: bytes) -> None:
    """Retry-After and Cache-Control: never longer than the longest."""
    text = data.decode("latin-1")
    wait = retry_after_ms(text, NOW)
    assert wait is None or 0 <= wait <= LONGEST_WAIT_MS
    assert 0 <= expires_after(200, text) <= 7 * 86_400


def link_header(data: bytes) -> None:
    """Link headers."""
    text = data.decode("latin-1")
    assert len(parsed_links(text, 50)) <= 50
    discovery_links([("Link", text)], "http://example.org/")
    json_ld_context([("Link", text)])


def url(data: bytes) -> None:
    """A URL in its one form stays as it is, its key too, and both have a host or none."""
    text = data.decode("utf-8", "surrogateescape")
    forbidden(text)
    try:
        href = fetch_url(text)
    except UrlError:
        return
    assert fetch_url(href) == href
    key = url_key(text)
    assert url_key(key) == key
    assert url_key(href) == key
    for part in (host, host_key, authority, surt):
        part(href)
    shown = ftp_address(href)
    assert shown is None or not shown.password or f":{shown.password}@" not in shown.place


def reference(data: bytes) -> None:
    """A reference, and behind a line break its base: what is resolved stays as it is."""
    base, _, text = data.decode("utf-8", "surrogateescape").partition("\n")
    try:
        href = resolve(text, base)
    except UrlError:
        return
    assert fetch_url(href) == href


def blocklist(data: bytes) -> None:
    """Lines of block lists: any address can be looked for afterwards."""
    found = CollectedEntries()
    for line in data.decode("utf-8", "replace").splitlines():
        for entry in (entries(line) or []) + (expressions(line) or []):
            found.add(entry)
    table = BlocklistTable([found])
    for host_name, rest in (("www.example.org", "/a/b?c"), ("[::1]", "/"), ("", "")):
        table.find(host_name, rest)
