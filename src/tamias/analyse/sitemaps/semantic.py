"""The `dataset` of the Semantic Sitemap extension, in both of its namespaces and all of its spellings."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tamias.analyse.sitemaps.contents import Gathered
from tamias.analyse.sitemaps.elements import Element
from tamias.analyse.sitemaps.urlset import change_frequency, own_spaces, time_ms
from tamias.model.site import NAMESPACES, Location, Prefix, SemanticDataset, covers
from tamias.model.url import fetch_url

_FIELDS: Final = {
    "linkeddataprefix": "prefix",
    "datadumplocation": "dump",
    "datadump": "dump",
    "datafragmentdump": "fragment",
    "datafragmentdumplocation": "fragment",
    "sparqlendpointlocation": "endpoint",
    "sparqlendpoint": "endpoint",
    "sparqlgraphname": "graph name",
    "dataseturi": "datasetURI",
    "datasetlabel": "datasetLabel",
    "sampleuri": "sample",
}
_PLAIN_FIELDS: Final = frozenset({"changefreq", "lastmod"})
_SINGLE: Final = frozenset({"datasetURI", "datasetLabel", "changefreq", "lastmod"})
_PRIORITY = re.compile(r"[+]?\d{1,9}", re.ASCII)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")

Fields = dict[str, list[Element]]


class DatasetReader:
    """Reads the datasets of one sitemap, whose URIs must differ."""

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._uris: set[str] = set()

    def read(self, root: Element, entry: Element) -> None:
        """Read a child of the root, if it is a dataset."""
        if entry.name != "dataset":
            return
        if entry.space not in NAMESPACES:
            self._gathered.problem(
                f"dataset in the namespace {entry.space[:200]!r}, read as one of a Semantic Sitemap",
                entry.line,
            )
        fields = self._fields(entry, NAMESPACES | {entry.space}, own_spaces(root))
        dataset = self._dataset(fields)
        self._gathered.dataset(dataset)
        uri = dataset.uri or ""
        if uri.startswith(("http://", "https://")) and not covers(dataset, uri):
            self._gathered.page(fetch_url(uri))  # its description

    def _fields(self, entry: Element, semantic: frozenset[str], plain: frozenset[str]) -> Fields:
        fields: Fields = {}
        for child in entry.children:
            field = self._field(child, semantic, plain)
            if field is None or not child.text:
                continue
            if field in _SINGLE and field in fields:
                self._gathered.problem(f"dataset with more than one {field}: the first counts", child.line)
                continue
            fields.setdefault(field, []).append(child)
        return fields

    def _field(self, child: Element, semantic: frozenset[str], plain: frozenset[str]) -> str | None:
        if child.name in _PLAIN_FIELDS:
            if child.space in plain:
                return child.name
            if child.space in semantic:
                self._gathered.problem(f"{child.name} is a word of the plain sitemap, but read", child.line)
                return child.name
        return _FIELDS.get(child.name) if child.space in semantic else None

    def _dataset(self, fields: Fields) -> SemanticDataset:
        label = _first(fields, "datasetLabel")
        fragments = tuple(self._locations(fields.get("fragment", ())))
        if len(fragments) == 1:
            self._gathered.problem(
                "dump of a single fragment, taken for all of it", fields["fragment"][0].line
            )
        return SemanticDataset(
            uri=self._uri(_first(fields, "datasetURI")),
            label=" ".join(label.text.split()) if label else None,
            prefixes=tuple(
                Prefix(iri=iri, slicing=_slicing(element))
                for element in fields.get("prefix", ())
                if (iri := self._iri(element))
            ),
            dumps=tuple(self._locations(fields.get("dump", ()))),
            fragments=fragments,
            endpoints=tuple(self._locations(fields.get("endpoint", ()))),
            graph_names=tuple(filter(None, map(self._iri, fields.get("graph name", ())))),
            samples=tuple(filter(None, map(self._iri, fields.get("sample", ())))),
            changefreq=self._gathered.sensible("changefreq", change_frequency, _first(fields, "changefreq")),
            lastmod_ms=self._gathered.sensible("date", time_ms, _first(fields, "lastmod")),
        )

    def _uri(self, element: Element | None) -> str | None:
        uri = self._iri(element) if element else None
        if element is None or uri is None:
            return None
        if uri in self._uris:
            self._gathered.problem(
                f"datasetURI {uri[:200]} of two datasets: it names the first", element.line
            )
            return None
        self._uris.add(uri)
        return uri

    def _locations(self, elements: Iterable[Element]) -> Iterator[Location]:
        for element in elements:
            url = self._gathered.address(element.text, element.line)
            if url is not None:
                self._gathered.count()
                yield Location(url=url, priority=self._priority(element), slicing=_slicing(element))

    def _priority(self, element: Element) -> int | None:
        text = element.attributes.get("priority")
        if text is None:
            return None
        if _PRIORITY.fullmatch(text.strip()):
            return int(text)
        self._gathered.problem(
            f"priority {text[:100]!r} is not a whole number from 0: read as 1", element.line
        )
        return 1

    def _iri(self, element: Element) -> str | None:
        """An IRI of RDF, which stays as it is, unless it is relative."""
        url = self._gathered.address(element.text, element.line)
        return element.text if url and _ABSOLUTE.fullmatch(element.text) else url


def _slicing(element: Element) -> str | None:
    return element.attributes.get("slicing", "").strip()[:100].lower() or None


def _first(fields: Fields, name: str) -> Element | None:
    return next(iter(fields.get(name, ())), None)
