"""Walls of bot protection are refused and never versions; ordinary pages that mention them are read."""

import json
from functools import partial
from itertools import product

import pytest

from tests.messages import unsaid

DATA = '<script type="application/ld+json">{{"@id": "{}", "http://schema.org/name": "Ann"}}</script>'
ANUBIS = (
    "<title>Making sure you're not a bot!</title><link rel=stylesheet href=/.within.website/x/xess/xess.css>"
    '<script id="anubis_version" type="application/json">"v1.21.3"</script>'
    '<script id="anubis_challenge" type="application/json">{"rules":{"difficulty":4}}</script>'
    "<body><h1>Making sure you're not a bot!</h1><p>Loading...</p>"
)
CLOUDFLARE = (
    '<title>Just a moment...</title><meta http-equiv="refresh" content="360"><body>'
    "<script>(function(){window._cf_chl_opt = {cvId: '3', cZone: 'a'};})();</script>"
    '<script src="/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1"></script>'
)
BLOCKED = (
    "<title>Attention Required! | Cloudflare</title><body><div id='cf-wrapper'><div id='cf-error-details'>"
    "<h1>Sorry, you have been blocked</h1>You are unable to access a.example</div></div>"
)
INCAPSULA = (
    '<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"></head><body>'
    '<iframe id="main-iframe" src="/_Incapsula_Resource?CWUDNSAI=9&xinfo=1" frameborder=0>'
    "Request unsuccessful. Incapsula incident ID: 1000-2000</iframe>"
)
INCIDENT = "<html><body>Request unsuccessful. Incapsula incident ID: 877000150-2333</body></html>"
DATADOME = (
    "<html><title>a.example</title><body><p id=cmsg>Please enable JS and disable any ad blocker</p>"
    "<script>var dd={'rt':'c','cid':'AHrl','hsh':'2F','t':'fe','host':'geo.captcha-delivery.com'}</script>"
    '<script src="https://ct.captcha-delivery.com/c.js"></script>'
)
DATADOME_FRAME = '<body><iframe src="https://geo.captcha-delivery.com/captcha/?initialCid=AHrl"></iframe>'
DATADOME_JSON = '{"url":"https://geo.captcha-delivery.com/captcha/?initialCid=AHrl&hash=2F&cid=x&t=fe"}'
AKAMAI = (
    "<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\nYou don't have "
    'permission to access "http&#58;&#47;&#47;a&#46;example&#47;" on this server.<P>\n'
    "Reference&#32;&#35;18&#46;2d351ab8&#46;1557333295&#46;a4e16ab\n<P>https&#58;&#47;&#47;errors&#46;edgesuite&#46;net&#47;18&#46;2d\n</P>\n</BODY>"
)
AKAMAI_CHALLENGE = (
    '<html><head><meta http-equiv="refresh" content="5"></head><body><div id="sec-if-cpt-container" '
    'class="crypto"></div><script src="/_sec/cp_challenge/abc-1.js" async></script>'
)
AWS = (
    '<html><script>window.awsWafCookieDomainList = []; window.gokuProps = {"key":"AQ","iv":"x"};</script>'
    '<script src="https://a.edge.sdk.awswaf.com/b/challenge.js"></script><body><div id=challenge-container>'
    "</div><noscript><h1>JavaScript is disabled</h1></noscript>"
)
SUCURI = (
    "<title>Sucuri WebSite Firewall - Access Denied</title><body>"
    "<h1>Access Denied - Sucuri Website Firewall</h1>"
    "<p>Block reason: Bad bot access attempt.</p>"
)
SUCURI_SCRIPT = (
    "<html><title>You are being redirected...</title><noscript>Javascript is required.</noscript>"
    "<script>var s={},u,c,U,r,i,l=0,a,e=eval,w=String.fromCharCode,sucuri_cloudproxy_js='',S='cz0';</script>"
)
EMPTY = "<html><body></body></html>"

WALLS = [
    # (whose wall, page, statuses, headers)
    ("Anubis", ANUBIS, (200, 202, 403, 429, 503), {}),
    ("Anubis", ANUBIS.replace("anubis_challenge", "anubis_base_prefix"), (200, 403), {}),
    ("Cloudflare", CLOUDFLARE, (200, 403, 429, 503), {"cf-ray": "1"}),
    ("Cloudflare", EMPTY, (200, 403, 503), {"cf-mitigated": "challenge"}),
    ("Cloudflare", BLOCKED, (403,), {"server": "cloudflare"}),
    ("Incapsula", INCAPSULA, (200, 403), {"X-Iinfo": "1-2-3"}),
    ("Incapsula", INCIDENT, (200, 503), {}),
    ("DataDome", DATADOME, (200, 403, 429), {"x-datadome": "protected"}),
    ("DataDome", DATADOME_FRAME, (403,), {}),
    ("DataDome", DATADOME_JSON, (403,), {"content-type": "application/json"}),
    ("DataDome", EMPTY, (403,), {"x-dd-b": "1"}),
    ("Akamai", AKAMAI, (200, 403), {"server": "AkamaiGHost"}),
    ("Akamai", AKAMAI_CHALLENGE, (200, 429), {}),
    ("AWS WAF", AWS, (202, 403), {}),
    ("AWS WAF", EMPTY, (202,), {"x-amzn-waf-action": "challenge"}),
    ("AWS WAF", EMPTY, (405,), {"x-amzn-waf-action": "captcha"}),
    ("Sucuri", SUCURI, (403,), {"x-sucuri-id": "1"}),
    ("Sucuri", EMPTY, (403,), {"x-sucuri-block": "BNP005"}),
    ("Sucuri", SUCURI_SCRIPT, (200,), {}),
]
CASES = {f"/wall/{n}": each for n, each in enumerate((w, p, s, h) for w, p, all_s, h in WALLS for s in all_s)}

QUOTED = [
    ANUBIS, CLOUDFLARE, BLOCKED, INCAPSULA, INCIDENT, DATADOME, DATADOME_FRAME, DATADOME_JSON, AKAMAI,
    AKAMAI_CHALLENGE, AWS, SUCURI, SUCURI_SCRIPT,
]  # fmt: skip
WORDS = "This page tells how such a page looks, and what its reader can do about it. "


def escaped(page):
    return page.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


ARTICLES = [
    lambda page: f"<h1>How they look</h1><pre>{escaped(page)}</pre>",
    lambda page: f"<p>{WORDS}</p><code>{escaped(page)}</code>",
    lambda page: f"<!-- {page.replace('--', '- -')} --><p>{WORDS}",
    lambda page: f"<textarea>{escaped(page)}</textarea><p>{WORDS}",
    lambda page: f"<template>{page}</template><p>{WORDS}",
    lambda page: f"<p>{WORDS * 40}</p>{page}",
    lambda page: f"<article itemscope itemtype='http://schema.org/Article'>{page}</article>",
    lambda page: f"<script>const sample = {json.dumps(escaped(page))}</script><p>{WORDS}",
    lambda page: f"<p title='{escaped(page).replace(chr(39), '')}'>{WORDS}</p>",
    lambda page: f"<script type=text/plain>{escaped(page)}</script><p>{WORDS}",
    lambda page: f"<style>/* {escaped(page)} */</style><p>{WORDS}",
    lambda page: f"<table><tr><td>{escaped(page)}</td><td>403</td></tr></table>",
    lambda page: f"<ol><li>{WORDS}<li>{escaped(page)}<li>{WORDS}</ol>",
    lambda page: f"<h1>Access, denied?</h1><blockquote>{escaped(page)}</blockquote>",
    lambda page: f'<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script><p>{escaped(page)}',
    lambda page: f'<script src="/_Incapsula_Resource?SWJIYLWA=719"></script><p>{escaped(page)}',
]
ORDINARY = {f"/page/{n}": make(page) for n, (page, make) in enumerate(product(QUOTED, ARTICLES))}


def answer(handler, body, status=200, headers=None):
    data = body.encode()
    handler.send_response(status)
    for name, value in {"content-type": "text/html", **(headers or {})}.items():
        handler.send_header(name, value)
    handler.send_header("content-length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


@pytest.fixture
def crawl(tamias, site):
    tamias.env["TAMIAS_SCHEDULE__RULE"] = "fixed:1"

    def visit(*urls):
        done = tamias.run("crawl", "--recrawl", *urls, "--allow-private", "--delay", "0", "--workers", "1")
        assert done.returncode in (0, 1), done.stderr
        return done.stdout + done.stderr

    return visit


def test_a_wall_is_refused_and_the_version_before_stays(tamias, site, crawl):
    assert len(CASES) >= 30
    for path in CASES:
        site.pages[path] = partial(answer, body=f"<html>{DATA.format(site.url(path))}<p>{path}")
    urls = [site.url(path) for path in CASES]
    assert tamias.run("add", *urls).returncode == 0
    crawl(*urls)
    before = set(tamias.run("export", "--format", "nquads").stdout.splitlines())
    assert len(before) == len(CASES)
    for path, (_, page, status, headers) in CASES.items():
        site.pages[path] = partial(answer, body=page, status=status, headers=headers)
    crawl(*urls)
    assert set(tamias.run("export", "--format", "nquads").stdout.splitlines()) == before

    rows = {row["url"]: row for row in json.loads(tamias.run("list", "--trouble", "--json").stdout)}
    assert {path: rows[site.url(path)]["trouble"] for path in CASES} == {
        path: f"refused: wall: {wall} challenge ({status})" for path, (wall, _, status, _) in CASES.items()
    }
    assert {row["versions"] for row in rows.values()} == {1}
    stored = json.loads(tamias.run("versions", site.url("/wall/0"), "--suspicious", "--json").stdout)
    assert [each["suspicious"] for each in stored] == ["wall: Anubis challenge (200)"]
    names = ", ".join(sorted({wall for wall, *_ in CASES.values()}))
    note = f"{len(CASES)} responses were walls ({names})"
    for words in (("status", "--once"), ("stats",), ("list", "--trouble")):
        assert f"{note}, last on " in tamias.run(*words).stdout, words
    assert rows[urls[0]]["note"].startswith(note)


def test_ordinary_pages_that_mention_walls_are_read(tamias, site, crawl):
    assert len(ORDINARY) >= 200
    links = "".join(f'<a href="{path}">x</a>' for path in ORDINARY)
    site.pages["/"] = partial(answer, body=f"<html>{links}")
    for path, page in ORDINARY.items():
        body = f"<!DOCTYPE html><html><body>{page}</body></html>"
        site.pages[path] = partial(answer, body=body, headers={"server": "cloudflare", "x-sucuri-id": "1"})
    done = tamias.run(
        "crawl", site.url("/"), "--depth", "1", "--allow-private", "--delay", "0", "--workers", "1"
    )
    found = json.loads(tamias.run("stats", "--json").stdout)["corpus"]["outcomes"]
    assert {each["outcome"]: each["attempts"] for each in found} == {"ok": len(ORDINARY) + 1}, done.stdout


PAGE = "<html>{data}<p>" + "A page that says much. " * 200
TURTLE = "".join(f"<http://e.example/{n}> <http://e.example/p> {n} .\n" for n in range(20))


@pytest.mark.parametrize("first", ["add", "crawl"])
def test_a_document_that_lost_its_statements_stays_as_it_was(tamias, site, crawl, first):
    """A page without its data and most of its size, and a file with a syntax error."""
    turtle = {"content-type": "text/turtle"}

    def serve(page, text):
        site.pages["/a.html"] = partial(answer, body=page.format(data=DATA.format(site.url("/a"))))
        site.pages["/a.ttl"] = partial(answer, body=text, headers=turtle)

    serve(PAGE, TURTLE)
    urls = [site.url(path) for path in ("/a.html", "/a.ttl")]
    if first == "add":
        assert tamias.run("add", *urls).returncode == 0
        crawl(*urls)
    else:
        options = ("--depth", "0", "--sink", "archive", "--allow-private", "--delay", "0", "--workers", "1")
        assert tamias.run("crawl", *urls, *options).returncode == 0
    before = set(tamias.run("export", "--format", "nquads").stdout.splitlines())
    assert len(before) == 21
    serve("<html><p>Please wait.", TURTLE[:300] + "<http://e.example/")
    told = crawl(*urls)
    assert set(tamias.run("export", "--format", "nquads").stdout.splitlines()) == before, told
    listed = {row["url"]: row for row in json.loads(tamias.run("list", "--json").stdout)}
    assert not unsaid(listed[urls[0]]["trouble"])
    assert not unsaid(listed[urls[1]]["trouble"], "20", part=2)
    assert {row["versions"] for row in listed.values()} == {1}


@pytest.fixture
def moved(tamias, site, site_at, crawl):
    """A page of two addresses that moved for good: within its host, and to another host."""
    here, there, another_site = site.url("/old.ttl"), site.url("/away.ttl"), site_at("127.0.0.2")
    turtle = {"content-type": "text/turtle"}
    for path in ("/old.ttl", "/away.ttl"):
        text = f"<{site.url(path)}> <http://e.example/p> 1 ."
        site.pages[path] = partial(answer, body=text, headers=turtle)
    assert tamias.run("add", here, there).returncode == 0
    crawl(here, there)
    targets = {"/old.ttl": site.url("/new.ttl"), "/away.ttl": another_site.url("/new.ttl")}
    for path, target in targets.items():
        site.pages[path] = partial(answer, body="", status=301, headers={"location": target})
    text = "<http://e.example/new> <http://e.example/p> 2 ."
    site.pages["/new.ttl"] = another_site.pages["/new.ttl"] = partial(answer, body=text, headers=turtle)
    crawl(here, there)
    tamias.run("crawl", "--recrawl", "--allow-private", "--delay", "0", "--workers", "1")
    return {here: targets["/old.ttl"], there: targets["/away.ttl"]}


def test_statements_end_where_an_address_moved_and_get_follows(tamias, moved):
    graphs = {line.split("> <")[-1].rstrip("> .\n") for line in tamias.run("export").stdout.splitlines()}
    assert graphs == set(moved.values())
    for old, new in moved.items():
        done = tamias.run("get", old)
        assert (done.stdout, f"{old} redirects to {new}" in done.stderr) == (
            "<http://e.example/new> <http://e.example/p> 2 .",
            True,
        )
