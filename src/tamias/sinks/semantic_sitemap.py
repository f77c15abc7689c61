"""Writes a Semantic Sitemap: the datasets of a site and the ways to have them, for other crawlers."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from tamias.model.site import NAMESPACE, Location, SemanticDataset

_SPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"


def semantic_sitemap(datasets: Iterable[SemanticDataset]) -> Iterator[str]:
    """The lines of the file, in the order of the paper's own listings."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<urlset xmlns="{_SPACE}" xmlns:sc="{NAMESPACE}">\n'
    for dataset in datasets:
        yield "  <sc:dataset>\n"
        for name, text, attributes in _elements(dataset):
            told = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
            yield f"    <{name}{told}>{escape(text)}</{name}>\n"
        yield "  </sc:dataset>\n"
    yield "</urlset>\n"


def _elements(dataset: SemanticDataset) -> Iterator[tuple[str, str, dict[str, str]]]:
    if dataset.label:
        yield "sc:datasetLabel", dataset.label, {}
    if dataset.uri:
        yield "sc:datasetURI", dataset.uri, {}
    for prefix in dataset.prefixes:
        yield "sc:linkedDataPrefix", prefix.iri, _attributes(None, prefix.slicing)
    for sample in dataset.samples:
        yield "sc:sampleURI", sample, {}
    for name, locations in (
        ("sc:sparqlEndpointLocation", dataset.endpoints),
        ("sc:dataDumpLocation", dataset.dumps),
        ("sc:dataFragmentDump", dataset.fragments),
    ):
        for location in locations:
            yield name, location.url, _of(location)
        if name == "sc:sparqlEndpointLocation":
            yield from (("sc:sparqlGraphName", graph, {}) for graph in dataset.graph_names)
    if dataset.lastmod_ms is not None:
        moment = datetime.fromtimestamp(dataset.lastmod_ms / 1000, UTC)
        yield "lastmod", moment.isoformat(timespec="seconds").replace("+00:00", "Z"), {}
    if dataset.changefreq:
        yield "changefreq", dataset.changefreq, {}


def _of(location: Location) -> dict[str, str]:
    return _attributes(location.priority, location.slicing)


def _attributes(priority: int | None, slicing: str | None) -> dict[str, str]:
    found = {"slicing": slicing} if slicing else {}
    return found if priority is None else {**found, "priority": str(priority)}
