"""Writes a Semantic Sitemap: the datasets on offer and the ways to have them. Pure."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from xml.sax.saxutils import escape, quoteattr

from tamias.model.site import NAMESPACE, Location, SemanticDataset

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"\n'
    f'        xmlns:sc="{NAMESPACE}">\n'
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
    yield from _texts("lastmod", None if dataset.lastmod_ms is None else _time(dataset.lastmod_ms))
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
        f" {key}={quoteattr(_xml(value))}" for key, value in attributes.items() if value is not None
    )
    return f"    <{name}{said}>{escape(_xml(text))}</{name}>"


def _xml(text: str) -> str:
    """The text without what XML cannot say."""
    return _NO_XML.sub("\ufffd", text)


def _time(milliseconds: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
