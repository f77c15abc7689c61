"""A dataset as a Semantic Sitemap describes it: one body of RDF and the ways to have it.

IRIs of RDF (prefixes, the dataset's own, samples, graphs) stay as they are; locations are `fetch_url`s.
"""

from typing import Final

import msgspec

NAMESPACE: Final = "http://sw.deri.org/2007/07/sitemapextension/scschema.xsd"
NAMESPACES: Final = frozenset({NAMESPACE, NAMESPACE.replace("deri.", "deriv.")})
"""The second is a misprint in the paper, which listings were copied from."""


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """Where a dataset, a fragment of it, or an endpoint over it stands."""

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
    """What the IRIs of a dataset begin with; each of them leads to its description."""

    iri: str
    slicing: str | None = None


class SemanticDataset(msgspec.Struct, frozen=True, kw_only=True):
    """One dataset. Every way of access leads to the same data, but for delays."""

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
    """One of `tamias.model.hint.CHANGE_FREQUENCIES`."""
    lastmod_ms: int | None = None


class SemanticDatasets(msgspec.Struct, frozen=True):
    """The datasets of a sitemap, in a batch; each stands for itself."""

    datasets: list[SemanticDataset]


def covers(dataset: SemanticDataset, iri: str, among: frozenset[str] | None = None) -> bool:
    """Whether an IRI belongs to a dataset: whether it begins with one of the prefixes, letter by letter.

    With `among`, only those of the prefixes count, such as the authoritative ones.
    """
    return any(
        iri.startswith(prefix.iri) for prefix in dataset.prefixes if among is None or prefix.iri in among
    )
