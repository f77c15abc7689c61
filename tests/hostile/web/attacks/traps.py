"""H15 and H18: sites without an end, and rules that take for ever to compare."""

import random

from benchmarks.webs.server import WireRequest
from tests.hostile.web.attack import Attack, AttackEvidence, Check, asked_at_most, every, read
from tests.hostile.web.wire import made, redirect, whole

MOST = 250
"""Requests to a trap before it counts as one that caught us."""
_WORDS = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "flint",
    "grove",
    "hazel",
    "iris",
    "jade",
    "kelp",
    "lotus",
    "maple",
    "nettle",
    "onyx",
    "pearl",
]
_MAP = "http://www.sitemaps.org/schemas/sitemap/0.9"


def growing(_: WireRequest) -> str:
    """Relative links that make every path longer."""
    return "<a href='more/'>more</a><a href='deeper/again/'>again</a><a href='../side/'>side</a>"


def calendar(asked: WireRequest) -> str:
    """There is always a next day."""
    day = int(asked.query.partition("=")[2] or 0)
    return f"<h1>Day {day}</h1><a href='/?day={day + 1}'>next</a><a href='/?day={day + 100}'>later</a>"


def session(_: WireRequest) -> str:
    """The same page, under another name for each visit."""
    number = random.randrange(10**9)
    return f"<a href='/?sid={number}'>a</a><a href='/?phpsessid={number}'>b</a>"


def facets(asked: WireRequest) -> str:
    """Every filter can be added to every filter."""
    query = asked.query
    return "".join(f"<a href='?{query}&f{number}={len(query)}'>x</a>" for number in range(2))


def babble(asked: WireRequest) -> str:
    """Always other words, always one step further."""
    chance = random.Random(asked.target)
    words = " ".join(chance.choices(_WORDS, k=30))
    return f"<p>{words}</p><a href='/{'-'.join(chance.choices(_WORDS, k=4))}'>more</a>"


def endless_index(asked: WireRequest) -> str:
    """An index of sitemaps that names another index."""
    number = int(asked.query or 0) + 1
    return f"<sitemapindex xmlns='{_MAP}'><sitemap><loc>http://maps.test/map.xml?{number}</loc></sitemap></sitemapindex>"


def many_urls() -> str:
    """A sitemap of more addresses than one may have."""
    urls = "".join(f"<url><loc>http://maps-wide.test/none/{n}</loc></url>" for n in range(5000))
    return f"<urlset xmlns='{_MAP}'>{urls}</urlset>"


def stars() -> str:
    """Rules that a backtracking comparison never finishes."""
    rules = [f"Disallow: /{'*a' * 60}*b$", f"Disallow: /{'a*' * 60}c", "Disallow: /" + "*" * 5000 + "x"]
    return "User-agent: *\n" + "\n".join(rules * 50) + "\n"


def caught(host: str, most: int = MOST) -> Check:
    """The trap got some requests, and then no more."""
    return asked_at_most(host, most)


def wide_map(evidence: AttackEvidence) -> str | None:
    """No more addresses were taken than one sitemap may have."""
    capture = evidence.last("http://maps-wide.test/map.xml")
    if capture is None:
        return "the sitemap was not read"
    return None if capture.links <= 2000 else f"{capture.links} addresses were taken"


ATTACKS = (
    Attack(
        number="H15",
        name="trap-paths",
        what="relative links that make every path longer",
        limit="filters.max_repeats, max_segments, max_length",
        pages={"*": made(growing)},
        holds=caught("trap-paths.test"),
    ),
    Attack(
        number="H15",
        name="trap-calendar",
        what="an endless calendar: pages that differ only in their numbers",
        limit="permit.monotony: such pages without statements are skipped after so many",
        pages={"*": made(calendar)},
        holds=caught("trap-calendar.test", 150),
    ),
    Attack(
        number="H15",
        name="trap-session",
        what="a new session in every link",
        limit="filters.session_names: session parameters do not make another URL",
        pages={"*": made(session)},
        holds=caught("trap-session.test", 5),
    ),
    Attack(
        number="H15",
        name="trap-facets",
        what="filters that can be combined without end",
        limit="permit.host_visits, filters.max_query_pairs",
        pages={"*": made(facets)},
        holds=caught("trap-facets.test"),
    ),
    Attack(
        number="H15",
        name="trap-babble",
        what="generated pages that link to generated pages, no two alike",
        limit="permit.host_visits; it never delays other hosts",
        pages={"*": made(babble)},
        holds=caught("trap-babble.test"),
    ),
    Attack(
        number="H15",
        name="trap-redirects",
        what="every URL redirects to another one",
        limit="fetch.max_redirects",
        pages={"*": redirect("/{}")},
        holds=caught("trap-redirects.test", 20),
    ),
    Attack(
        number="H15",
        name="maps",
        what="a sitemap index that names another index, without end",
        limit="indexes three deep",
        pages={
            "/robots.txt": whole("Sitemap: http://maps.test/map.xml\n", "text/plain"),
            "/": whole("<> <#p> 1 ."),
            "/map.xml": made(endless_index, "application/xml"),
        },
        holds=caught("maps.test", 10),
    ),
    Attack(
        number="H15",
        name="maps-wide",
        what="a sitemap of 5,000 URLs that do not exist",
        limit="analyse.sitemap_urls; only its own host waits for them",
        pages={
            "/robots.txt": whole(
                "User-agent: *\nDisallow: /none/\nSitemap: http://maps-wide.test/map.xml\n", "text/plain"
            ),
            "/": whole("<> <#p> 1 ."),
            "/map.xml": whole(many_urls(), "application/xml"),
        },
        holds=wide_map,
    ),
    Attack(
        number="H18",
        name="regex",
        what="a robots.txt of patterns that a backtracking comparison never finishes, and long paths",
        limit="patterns are compared by successive search, never with a backtracking regular expression",
        seeds=("/", "/" + "a" * 2000, "/ab" + "a" * 1500),
        pages={
            "/robots.txt": whole(stars(), "text/plain"),
            "*": whole("<a href='" + "a" * 1900 + "'>x</a>" + "<" * 5000 + "!--" * 5000, "text/html"),
        },
        holds=every(read("http://regex.test/"), read("http://regex.test/" + "a" * 2000)),
    ),
)
