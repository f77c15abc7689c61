"""`crawl --requisites` fetches what pages need to be shown, and nothing that these lead to."""

PAGE = b"""<!DOCTYPE html><html><head><title>A page</title>
<link rel="stylesheet" href="/style.css"><link rel="icon" href="/icon.png"><link rel="next" href="/next.html">
<script src="/script.js"></script><style>body { background: url("/inline.png") }</style></head>
<body background="/old.png"><img src="/image.png" srcset="/small.png 1x, /large.png 2x">
<p style="background: url(/attribute.png)">Text</p><img src="data:image/png;base64,AAAA">
<img src="/forbidden.png"><a href="/link.html">a link</a></body></html>"""
STYLE = b"@import 'more.css'; /* url(/comment.png) */ p { background: url( '/styled.png' ) }"
NEEDED = {
    *(
        "/style.css",
        "/icon.png",
        "/script.js",
        "/inline.png",
        "/old.png",
        "/image.png",
        "/small.png",
        "/large.png",
    ),
    *("/attribute.png", "/more.css", "/styled.png", "/deep.css"),
}


def prepare(site, reply):
    html, style, image = ({"Content-Type": each} for each in ("text/html", "text/css", "image/png"))
    site.pages = {path: reply(200, b"\x89PNG\r\n\x1a\n", **image) for path in NEEDED}
    site.pages |= {
        "/robots.txt": reply(200, b"User-agent: *\nDisallow: /forbidden.png\n", Content_Type="text/plain"),
        "/": reply(200, PAGE, **html),
        "/style.css": reply(200, STYLE, **style),
        "/more.css": reply(200, b"@import '/deep.css';", **style),
        "/deep.css": reply(200, b"@import '/deeper.css';", **style),
        "/deeper.css": reply(200, b"", **style),
        "/script.js": reply(200, b"fetch('/data.json')", Content_Type="text/javascript"),
        "/link.html": reply(200, b"<p>", **html),
        "/next.html": reply(200, b"<p>", **html),
    }


def asked(site):
    return {path for path, _ in site.log}


def test_what_a_page_needs_is_fetched_within_politeness_and_limits(tamias, site, reply):
    prepare(site, reply)
    run = tamias.crawl("--requisites", "--depth", "0", "--sink", "warc", site.url("/"))
    assert run.returncode == 0, run.stderr
    assert asked(site) == {"/robots.txt", "/", *NEEDED}
    assert min(site.gaps()) >= 0  # one request at a time, as for any other URL


def test_without_it_only_links_are_followed(tamias, site, reply):
    prepare(site, reply)
    assert tamias.crawl("--depth", "1", site.url("/")).returncode == 0
    assert asked(site) == {"/robots.txt", "/", "/link.html", "/next.html"}


def test_naming_it_later_opens_the_pages_again_and_a_later_run_keeps_it(tamias, site, reply):
    prepare(site, reply)
    assert tamias.crawl("--depth", "0", site.url("/")).returncode == 0
    later = tamias.crawl("--requisites")
    assert (later.returncode, "reopened 1 URL: requisites" in later.stderr) == (0, True), later.stderr
    assert asked(site) == {"/robots.txt", "/", *NEEDED}
    site.pages["/other"] = reply(200, b'<p><img src="/fresh.png">', Content_Type="text/html")
    del site.log[:]
    assert tamias.run("crawl", site.url("/other")).returncode == 0
    assert asked(site) == {"/other", "/fresh.png"}
