"""What makes a web more than its data: redirects, refusals, delays and lies. Pure. One function for each."""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

from pyoxigraph import Literal, Quad, RdfFormat

from tamias.features.demo.kinds import written
from tamias.features.demo.pages import Busy, Data, File, MissingPage, Page, Redirect, Slow
from tamias.features.demo.plot import Plot

CRAWL_DELAY = 1
TERMS = ("Thing", "label", "value", "kind", "link", "part")


class Oddity(NamedTuple):
    """Pages that a site has besides its data, and the addresses through which they are found."""

    pages: dict[str, Page]
    links: tuple[str, ...] = ()
    robots: tuple[str, ...] = ()
    """Lines for its robots.txt."""
    disallowed: tuple[str, ...] = ()
    """The pages that those lines forbid."""


def vocabulary(plot: Plot) -> Oddity:
    """The terms that all data uses, told apart by fragments. Every description links here."""
    label = plot.term("label")
    return Oddity({"/vocab": Data(tuple(Quad(plot.term(name), label, Literal(name)) for name in TERMS))})


def see_other(plot: Plot) -> Oddity:
    """Slash IRIs: a thing is not a document, so /id/N sends its visitors on to /doc/N."""
    pages: dict[str, Page] = {}
    for number in range(3):
        pages[f"/id/{number}"] = Redirect(f"/doc/{number}")
        pages[f"/doc/{number}"] = Data(plot.describe(plot.url(f"/id/{number}")))
    return Oddity(pages, tuple(plot.url(f"/id/{number}") for number in range(3)))


def hash_iris(plot: Plot) -> Oddity:
    """Hash IRIs: two things, one document, one request."""
    subjects = (plot.url("/hash#one"), plot.url("/hash#other"))
    return Oddity({"/hash": Data(plot.describe(subjects[0]) + plot.describe(subjects[1]))}, subjects)


def moved(plot: Plot) -> Oddity:
    """A page that has gone to another host, and one that moved twice at home."""
    elsewhere = plot.entrances[plot.node.number - 1]
    pages: dict[str, Page] = {
        "/moved/away": Redirect(elsewhere, 301),
        "/moved/twice": Redirect("once", 302),
        "/moved/once": Redirect(plot.url("/moved/here"), 307),
        "/moved/here": Data(plot.describe(plot.url("/moved/twice"))),
    }
    return Oddity(pages, (plot.url("/moved/away"), plot.url("/moved/twice")))


def gone(plot: Plot) -> Oddity:
    """Links that lead nowhere."""
    pages: dict[str, Page] = {"/missing": MissingPage(404), "/gone": MissingPage(410)}
    return Oddity(pages, tuple(map(plot.url, pages)))


def busy(plot: Plot) -> Oddity:
    """A page that asks the first visitor to come again in a second."""
    url = plot.url("/busy")
    return Oddity({"/busy": Busy(Data(plot.describe(url)))}, (url,))


def slow(plot: Plot) -> Oddity:
    """A page that takes its time."""
    url = plot.url("/slow")
    return Oddity({"/slow": Slow(Data(plot.describe(url)))}, (url,))


def mislabelled(plot: Plot) -> Oddity:
    """Turtle that is called plain text."""
    url = plot.url("/mislabelled")
    quads = plot.describe(url)
    return Oddity({"/mislabelled": File(written(quads, RdfFormat.TURTLE), "text/plain", quads)}, (url,))


def international(plot: Plot) -> Oddity:
    """An IRI whose address has to be written differently on the wire."""
    path = "/ort/Østre_Anlæg_(東)"
    iri = plot.url(path)
    return Oddity({quote(path, safe="/()"): Data(plot.describe(iri))}, (iri,))


def private(plot: Plot) -> Oddity:
    """Data that robots.txt forbids, linked and redirected to all the same, with one exception inside."""
    pages: dict[str, Page] = {
        path: Data(plot.describe(plot.url(path))) for path in ("/private/0", "/private/1", "/private/open")
    }
    pages["/to-private"] = Redirect("/private/1")
    return Oddity(
        pages,
        (plot.url("/private/0"), plot.url("/to-private"), plot.url("/private/open")),
        ("Disallow: /private/", "Allow: /private/open"),
        ("/private/0", "/private/1"),
    )


def crawl_delay(_: Plot) -> Oddity:
    """A host that wants to be visited slowly."""
    return Oddity({}, robots=(f"Crawl-delay: {CRAWL_DELAY}",))


ODDITIES: dict[str, Callable[[Plot], Oddity]] = {
    "vocabulary": vocabulary,
    "see-other": see_other,
    "hash": hash_iris,
    "moved": moved,
    "gone": gone,
    "busy": busy,
    "slow": slow,
    "mislabelled": mislabelled,
    "international": international,
    "private": private,
    "crawl-delay": crawl_delay,
}
