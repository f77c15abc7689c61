"""A Semantic Sitemap of a site, from what was crawled: what it declares, or else what was found there."""

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from tamias.archive.moments import rfc3339_or_none
from tamias.archive.sources.declared import declared_datasets, site_documents
from tamias.database.connect import Session
from tamias.features.exports.link_graph import xml_text
from tamias.model.errors import UsageError
from tamias.model.site import NAMESPACE, Location, Prefix, SemanticDataset
from tamias.model.url import authority, fetch_url, host

MOST_SAMPLES = 3

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"\n'
    f'        xmlns:sc="{NAMESPACE}">\n'
)


def site_datasets(session: Session, site: str) -> list[SemanticDataset]:
    """The datasets of a site. Raises `UsageError` where nothing is known of it.

    What the site declares itself stands as it is; documents with statements outside of that are one more.
    """
    place = authority(fetch_url(site))
    declared = [each.dataset for each in declared_datasets(session) if authority(each.sitemap) == place]
    covered = tuple(prefix.iri for dataset in declared for prefix in dataset.prefixes)
    places = {
        location.url
        for dataset in declared
        for location in (*dataset.dumps, *dataset.fragments, *dataset.endpoints)
    }
    documents = [
        each
        for each in site_documents(session, place + "/", most=10_000)
        if not each.url.startswith(covered) and each.url.partition("?")[0] not in places
    ]
    if documents:
        declared.append(
            SemanticDataset(
                label=host(place),
                prefixes=(Prefix(iri=_common([each.url for each in documents], place)),),
                samples=tuple(each.url for each in documents[:MOST_SAMPLES]),
                lastmod_ms=max(each.read_at for each in documents),
            )
        )
    if not declared:
        raise UsageError(f"nothing was crawled of {place}, and it declares no dataset")
    return declared


def _common(urls: list[str], place: str) -> str:
    """The folder that all documents stand in.

    >>> _common(["http://e/a/b.ttl", "http://e/a/c/d"], "http://e")
    'http://e/a/'
    """
    first, last = min(urls), max(urls)
    shared = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None)
    prefix = first[: shared if shared is not None else min(len(first), len(last))]
    return max(prefix[: prefix.rfind("/") + 1], place + "/", key=len)


def semantic_sitemap(datasets: Iterable[SemanticDataset]) -> bytes:
    """The sitemap of datasets, as it is to be put on the Web."""
    lines = (line for dataset in datasets for line in _dataset(dataset))
    return (_HEAD + "\n".join(lines) + "\n</urlset>\n").encode()


def _dataset(dataset: SemanticDataset) -> Iterator[str]:
    yield "  <sc:dataset>"
    yield from _texts("sc:datasetLabel", dataset.label)
    yield from _texts("sc:datasetURI", dataset.uri)
    for prefix in dataset.prefixes:
        yield _element("sc:linkedDataPrefix", prefix.iri, slicing=prefix.slicing)
    for sample in dataset.samples:
        yield _element("sc:sampleURI", sample)
    yield from _locations("sc:sparqlEndpointLocation", dataset.endpoints)
    for name in dataset.graph_names:
        yield _element("sc:sparqlGraphName", name)
    yield from _locations("sc:dataDumpLocation", dataset.dumps)
    yield from _locations("sc:dataFragmentDump", dataset.fragments)
    yield from _texts("lastmod", rfc3339_or_none(dataset.lastmod_ms))
    yield from _texts("changefreq", dataset.changefreq)
    yield "  </sc:dataset>"


def _locations(name: str, locations: Iterable[Location]) -> Iterator[str]:
    for location in locations:
        priority = None if location.priority is None else str(location.priority)
        yield _element(name, location.url, slicing=location.slicing, priority=priority)


def _texts(name: str, text: str | None) -> Iterator[str]:
    if text is not None:
        yield _element(name, text)


def _element(name: str, text: str, **attributes: str | None) -> str:
    said = "".join(
        f" {key}={quoteattr(xml_text(value))}" for key, value in attributes.items() if value is not None
    )
    return f"    <{name}{said}>{escape(xml_text(text))}</{name}>"
