"""The statements of a site about itself: changes of documents, permitted uses, datasets."""

from typing import Final

import msgspec

CHANGE_FREQUENCIES: Final = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    """A hint about one address. At least one of the fields is set."""

    url: str
    """As a `fetch_url`."""
    lastmod_ms: int | None = None
    """Milliseconds UTC; the beginning of the day, month or year where no more is said."""
    changefreq: str | None = None
    """One of `CHANGE_FREQUENCIES`."""
    priority: float | None = None
    """From 0 to 1, to be compared within one site only."""
    sha256: str | None = None
    """Of the body, in hexadecimal, as ResourceSync tells it."""


class Hints(msgspec.Struct, frozen=True):
    """Hints in a batch."""

    hints: list[Hint]
    """Of addresses that the sitemap speaks for by its own place."""
    beyond: list[Hint] = msgspec.field(default_factory=list)
    """Of others: they count only where the robots.txt of their host names this sitemap."""


def speaks_for(sitemap_url: str, url: str) -> bool:
    """Return whether a sitemap may say something of an address, both as `fetch_url`, by where it stands.

    >>> speaks_for("http://a.example/b/map.xml?c=/d/", "http://a.example/b/e?f")
    True
    >>> speaks_for("http://a.example/b/map.xml", "http://a.example/c")
    False
    """
    return url.startswith(sitemap_folder(sitemap_url))


def sitemap_folder(sitemap_url: str) -> str:
    """Return what every address begins with that a sitemap speaks for."""
    return sitemap_url.partition("?")[0].rpartition("/")[0] + "/"


class HostNote(msgspec.Struct, frozen=True, kw_only=True):
    """A note about a host for whoever runs a crawl."""

    host: str
    text: str
    count: int = 0
    """The responses that it is about."""


class Signal(msgspec.Struct, frozen=True, gc=False):
    """A rule that was in force for one capture, in its original words."""

    source: str
    """`header`, `meta`, `robots.txt` or `tdmrep.json`."""
    key: str
    """The name under which it stood, in lower case: `x-robots-tag`, `tdm-reservation`, ..."""
    value: str
    """One rule, such as `noindex` or `ai-train=no`."""


class Metas(msgspec.Struct, frozen=True, gc=False):
    """The metas of a page that speak of its use: name in lower case, and content."""

    pairs: list[tuple[str, str]]


NAMESPACE: Final = "http://sw.deri.org/2007/07/sitemapextension/scschema.xsd"
NAMESPACES: Final = frozenset({NAMESPACE, NAMESPACE.replace("deri.", "deriv.")})
"""The second is a misprint in the paper, which listings were copied from."""


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """The location of a dataset, a fragment of it, or an endpoint over it."""

    url: str
    priority: int | None = None
    """None where the sitemap states none, which weighs as 1. 0 is for when all others fail."""
    slicing: str | None = None
    """By which rule an endpoint describes one resource: `subject`, `subject-object`, `cbd`, ..."""

    @property
    def weight(self) -> int:
        """The priority that counts."""
        return 1 if self.priority is None else self.priority


class Prefix(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a dataset's IRIs; each of them leads to its description."""

    iri: str
    slicing: str | None = None


class SemanticDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset. Every way of access leads to the same data, but for delays."""

    uri: str | None = None
    """Its name; may have a fragment."""
    label: str | None = None
    prefixes: tuple[Prefix, ...] = ()
    """The dataset covers the union of them."""
    dumps: tuple[Location, ...] = ()
    fragments: tuple[Location, ...] = ()
    """All of them together are one whole."""
    endpoints: tuple[Location, ...] = ()
    graph_names: tuple[str, ...] = ()
    """The graphs of the endpoints that hold the dataset; none: the default graph."""
    samples: tuple[str, ...] = ()
    changefreq: str | None = None
    """One of `tamias.model.site.CHANGE_FREQUENCIES`."""
    lastmod_ms: int | None = None


class SemanticDatasets(msgspec.Struct, frozen=True):
    """The datasets of a sitemap, in a batch; each stands for itself."""

    datasets: list[SemanticDataset]


def covers(dataset: SemanticDataset, iri: str, among: frozenset[str] | None = None) -> bool:
    """Tell if an IRI belongs to a dataset, because it begins with one of its prefixes.

    With `among`, only those of the prefixes count, such as the authoritative ones.
    """
    return any(
        iri.startswith(prefix.iri) for prefix in dataset.prefixes if among is None or prefix.iri in among
    )
