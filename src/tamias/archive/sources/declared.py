"""Datasets as their publishers declare them in Semantic Sitemaps: who says what, where an IRI is."""

from collections.abc import Sequence

import msgspec

from tamias.archive.moved_captures import WantedCaptures, fetch_captures
from tamias.archive.sources.access_plan import endpoint_of_graphs
from tamias.archive.sources.claim import authoritative, claims
from tamias.archive.sources.sites import others_claims
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.site import SemanticDataset

_SQL = statements("tamias.archive.sources", "declared.sql")


class DeclaredDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset, and the sitemap that declares it."""

    key: bytes
    sitemap: str
    state: str
    """Of the crawl's own copy: claimed, copying, had, released."""
    dataset: SemanticDataset
    seen_at: int
    confirmed: frozenset[str]
    """Prefixes and locations that count: on the sitemap's own host, or declared by their own host too."""


class ServedAt(msgspec.Struct, frozen=True, kw_only=True):
    """A place where an IRI is served."""

    kind: str
    """`document`, `sparql`, `dump` or `fragment`."""
    url: str
    by: str
    """Who says so: a sitemap, a VoID description, or the crawl itself."""
    dataset: str | None = None
    graphs: tuple[str, ...] = ()
    slicing: str | None = None
    confirmed: bool = True
    """Whether the host that it is about says so too."""


class SiteDocument(msgspec.Struct, frozen=True):
    """A document that holds statements, and when it was read."""

    url: str
    read_at: int


def declared_datasets(session: Session, iri: str | None = None) -> list[DeclaredDataset]:
    """Return all declared datasets, or those to which an IRI belongs; each once, whichever crawl met it."""
    found: dict[tuple[str, bytes], DeclaredDataset] = {}
    for crawl, key, sitemap, state, description, seen_at in session.fetch_all(_SQL["declared"], {"iri": iri}):
        dataset = msgspec.convert(description, SemanticDataset)
        others = others_claims(session, crawl, claims(dataset, sitemap))
        declared = DeclaredDataset(
            key=bytes(key),
            sitemap=sitemap,
            state=state,
            dataset=dataset,
            seen_at=seen_at,
            confirmed=authoritative(dataset, sitemap, others),
        )
        found.setdefault((sitemap, declared.key), declared)
    return list(found.values())


def served_by(declared: DeclaredDataset, iri: str) -> list[ServedAt]:
    """Return the places where a declared dataset serves an IRI of its own, the cheapest first."""
    dataset = declared.dataset
    mine = [prefix for prefix in dataset.prefixes if iri.startswith(prefix.iri)][:1]
    places = [("document", iri.partition("#")[0], prefix.slicing, prefix.iri) for prefix in mine]
    for kind, locations in (
        ("sparql", dataset.endpoints),
        ("dump", dataset.dumps),
        ("fragment", dataset.fragments),
    ):
        places += [(kind, each.url, each.slicing, each.url) for each in locations]
    return [
        ServedAt(
            kind=kind,
            url=url,
            by=declared.sitemap,
            dataset=dataset.uri or dataset.label,
            graphs=dataset.graph_names if kind == "sparql" else (),
            slicing=slicing,
            confirmed=claimed in declared.confirmed,
        )
        for kind, url, slicing, claimed in places
    ]


def copied_from(declared: DeclaredDataset) -> list[str]:
    """Return the addresses under which a crawl may have copied the dataset."""
    dataset = declared.dataset
    graphs = [endpoint_of_graphs(each.url, dataset.graph_names) for each in dataset.endpoints]
    return [*graphs, *(each.url for each in (*dataset.dumps, *dataset.fragments))]


def documents_at(session: Session, urls: Sequence[str]) -> list[SiteDocument]:
    """Return those of these addresses that are crawled documents with statements."""
    rows = session.fetch_all(_SQL["documents_at"], {"url": list(urls)})
    return [SiteDocument(document, read_at) for document, read_at, holds in rows if holds]


def led_to(session: Session, bucket: int, qid: int, uid: int) -> str | None:
    """Return where an address led, by its place in the frontier; None without a successful visit."""
    values = {"bucket": bucket, "qid": qid, "uid": uid}
    rows = fetch_captures(session, _SQL["led_to"], values, WantedCaptures(queues=[qid]))
    return rows[0][0] if rows else None


def site_documents(session: Session, prefix: str, most: int) -> list[SiteDocument]:
    """Return documents of a site that have statements, those read last first."""
    rows = session.fetch_all(_SQL["site_documents"], {"prefix": prefix, "most": most})
    return [SiteDocument(*row) for row in rows]
