"""Whoever goes on with a crawl sends the requests that its options allow, as they say, and no others."""

import pytest

from tests.others import OTHERS

NAME = "pages.example"
CONTACT = "mailto:me@example.org"
DELAY = 0.2
OPTIONS = (
    *("--allow-private", "--no-robots", "--resolve", f"{NAME}:127.0.0.1", "--contact", CONTACT),
    *("--scope", "host", "--depth", "3", "--include", "/[0-9]|png$", "--exclude", "/9$"),
    *("--require", "good", "--forbid", "bad", "--requisites", "--delay", DELAY),
)
TAGS = "[0-9]$ good,png$ good,/7$ bad"
VISITED = ["/0", "/1", "/2", "/3", "/image.png", "/private/6"]


@pytest.fixture
def web(site, site_at, reply):
    """Pages that lead to one of each kind that an option refuses; `web.contacts` are those it was given."""
    other = site_at("127.0.0.2")
    site.contacts = set()

    def page(number):
        paths = (f"/{number + 1}", "/9", "/letters", "/5x", "/7", other.url("/1"))
        links = "".join(f"<a href='{path}'>x</a>" for path in paths)
        body = f"<p>{number}</p><img src='/image.png'>{links}<a href='/private/6'>x</a>"
        give = reply(200, body.encode(), Content_Type="text/html")

        def answer(handler):
            site.contacts.add(CONTACT.partition(":")[2] in handler.headers["User-Agent"])
            give(handler)

        return answer

    site.pages |= {f"/{number}": page(number) for number in range(10)}
    site.pages |= {"/image.png": reply(200, b"\x89PNG\r\n\x1a\n", Content_Type="image/png")}
    site.pages["/private/6"] = site.pages["/6"]
    site.pages["/robots.txt"] = reply(200, b"User-agent: *\nDisallow: /private\n", Content_Type="text/plain")
    return site


def visited(web):
    return sorted({path for path, _ in web.log})


@pytest.mark.parametrize("who", ["the next run", *OTHERS])
def test_every_option_holds(tamias, web, who):
    seed = web.url("/0").replace("127.0.0.1", NAME)
    tamias.env["TAMIAS_TAGS__RULES"] = TAGS
    words = ["crawl", *map(str, OPTIONS), *(("--max-urls", "1") if who not in OTHERS else ("--in-service",))]
    begun = tamias.run(*words, seed)
    assert begun.returncode == (0 if who in OTHERS else 5), begun.stderr
    del tamias.env["TAMIAS_TAGS__RULES"]
    if who in OTHERS:
        OTHERS[who](tamias)
        tamias.wait_until(lambda: set(VISITED) <= set(visited(web)))
    done = tamias.run("crawl")
    assert (done.returncode, "changed" in done.stderr) == (0, False), done.stderr
    assert visited(web) == VISITED
    assert web.contacts == {True}
    assert min(web.gaps()) >= DELAY
