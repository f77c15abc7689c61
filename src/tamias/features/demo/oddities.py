"""Oddities of the demo web: redirects, refusals, delays and lies, one function for each."""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

from pyoxigraph import Literal, Quad, RdfFormat

from tamias.features.demo.kinds import Busy, Data, File, MissingPage, Page, Redirect, Slow, written
from tamias.features.demo.plan import NodeWriter

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


def vocabulary(writer: NodeWriter) -> Oddity:
    """The terms that all data uses, told apart by fragments. Every description links here."""
    label = writer.term("label")
    return Oddity({"/vocab": Data(tuple(Quad(writer.term(name), label, Literal(name)) for name in TERMS))})


def see_other(writer: NodeWriter) -> Oddity:
    """Slash IRIs: a thing is not a document, so /id/N sends its visitors on to /doc/N."""
    pages: dict[str, Page] = {}
    for number in range(3):
        pages[f"/id/{number}"] = Redirect(f"/doc/{number}")
        pages[f"/doc/{number}"] = Data(writer.describe(writer.url(f"/id/{number}")))
    return Oddity(pages, tuple(writer.url(f"/id/{number}") for number in range(3)))


def hash_iris(writer: NodeWriter) -> Oddity:
    """Hash IRIs: two things, one document, one request."""
    subjects = (writer.url("/hash#one"), writer.url("/hash#other"))
    return Oddity({"/hash": Data(writer.describe(subjects[0]) + writer.describe(subjects[1]))}, subjects)


def moved(writer: NodeWriter) -> Oddity:
    """A page that has gone to another host, and one that moved twice at home."""
    elsewhere = writer.entrances[writer.node.number - 1]
    pages: dict[str, Page] = {
        "/moved/away": Redirect(elsewhere, 301),
        "/moved/twice": Redirect("once", 302),
        "/moved/once": Redirect(writer.url("/moved/here"), 307),
        "/moved/here": Data(writer.describe(writer.url("/moved/twice"))),
    }
    return Oddity(pages, (writer.url("/moved/away"), writer.url("/moved/twice")))


def gone(writer: NodeWriter) -> Oddity:
    """Links that lead nowhere."""
    pages: dict[str, Page] = {"/missing": MissingPage(404), "/gone": MissingPage(410)}
    return Oddity(pages, tuple(map(writer.url, pages)))


def busy(writer: NodeWriter) -> Oddity:
    """A page that asks the first visitor to come again in a second."""
    url = writer.url("/busy")
    return Oddity({"/busy": Busy(Data(writer.describe(url)))}, (url,))


def slow(writer: NodeWriter) -> Oddity:
    """A page that takes its time."""
    url = writer.url("/slow")
    return Oddity({"/slow": Slow(Data(writer.describe(url)))}, (url,))


def mislabelled(writer: NodeWriter) -> Oddity:
    """Turtle that is called plain text."""
    url = writer.url("/mislabelled")
    quads = writer.describe(url)
    return Oddity({"/mislabelled": File(written(quads, RdfFormat.TURTLE), "text/plain", quads)}, (url,))


def international(writer: NodeWriter) -> Oddity:
    """An IRI whose address has to be written differently on the wire."""
    path = "/ort/Østre_Anlæg_(東)"
    iri = writer.url(path)
    return Oddity({quote(path, safe="/()"): Data(writer.describe(iri))}, (iri,))


def private(writer: NodeWriter) -> Oddity:
    """Data that robots.txt forbids, linked and redirected to all the same, with one exception inside."""
    pages: dict[str, Page] = {
        path: Data(writer.describe(writer.url(path)))
        for path in ("/private/0", "/private/1", "/private/open")
    }
    pages["/to-private"] = Redirect("/private/1")
    return Oddity(
        pages,
        (writer.url("/private/0"), writer.url("/to-private"), writer.url("/private/open")),
        ("Disallow: /private/", "Allow: /private/open"),
        ("/private/0", "/private/1"),
    )


def crawl_delay(_: NodeWriter) -> Oddity:
    """A host that wants to be visited slowly."""
    return Oddity({}, robots=(f"Crawl-delay: {CRAWL_DELAY}",))


ODDITIES: dict[str, Callable[[NodeWriter], Oddity]] = {
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
