"""Declared datasets in the catalogue: VoID and DCAT of what a sitemap says, with its sitemap as source."""

from collections.abc import Collection, Iterator

from pyoxigraph import Literal, NamedNode, Quad

from tamias.archive.sources.declared import DeclaredDataset, declared_datasets
from tamias.database.connect import Session
from tamias.features.dcat.datasets.authority import frequency_iri
from tamias.features.dcat.terms import GraphBuilder, address, catalogue_graph, moment, text
from tamias.model.item import NEVER


def declared_quads(
    session: Session, only: Collection[str] | None = None, at: int = NEVER
) -> Iterator[list[Quad]]:
    """Yield a graph for each dataset declared until a time; only those of some sitemaps, if named."""
    for each in declared_datasets(session):
        if each.seen_at <= at and (only is None or each.sitemap in only):
            yield _quads(each)


def _quads(declared: DeclaredDataset) -> list[Quad]:
    dataset, name = declared.dataset, f"declared:{declared.key.hex()}"
    builder = GraphBuilder(catalogue_graph("declared", declared.key.hex()))
    node = address(dataset.uri) or catalogue_graph(name)
    builder.are([node], "void:Dataset", "dcat:Dataset")
    frequency = frequency_iri(dataset.changefreq or "")
    builder.each(
        node,
        {
            "dct:title": text(dataset.label),
            "prov:wasDerivedFrom": address(declared.sitemap),
            "prov:generatedAtTime": moment(declared.seen_at),
            "dct:modified": None if dataset.lastmod_ms is None else moment(dataset.lastmod_ms),
            "dct:accrualPeriodicity": NamedNode(frequency) if frequency else None,
        },
    )
    for prefix in dataset.prefixes:
        builder.add(node, "void:uriSpace", Literal(prefix.iri))
    for sample in dataset.samples:
        builder.add(node, "void:exampleResource", address(sample))
    for place in (*dataset.dumps, *dataset.fragments):
        _tell_dump(builder, node, place.url)
    for place in dataset.endpoints:
        _tell_endpoint(builder, node, place.url, dataset.graph_names)
    return builder.quads


def _tell_dump(builder: GraphBuilder, node: NamedNode, url: str) -> None:
    place = address(url)
    if place is None:
        return
    builder.add(node, "void:dataDump", place)
    form = NamedNode(f"{place.value}#distribution")
    builder.typed(node, "dcat:distribution", form, "dcat:Distribution")
    builder.each(form, {"dcat:downloadURL": place, "dcat:accessURL": place})


def _tell_endpoint(builder: GraphBuilder, node: NamedNode, url: str, graphs: tuple[str, ...]) -> None:
    place = address(url)
    if place is None:
        return
    builder.add(node, "void:sparqlEndpoint", place)
    form, service = NamedNode(f"{place.value}#distribution"), NamedNode(f"{place.value}#service")
    builder.typed(node, "dcat:distribution", form, "dcat:Distribution")
    builder.add(form, "dcat:accessURL", place)
    builder.typed(form, "dcat:accessService", service, "dcat:DataService")
    builder.each(service, {"dcat:endpointURL": place, "dcat:servesDataset": node})
    for graph in graphs:
        builder.add(service, "sd:namedGraph", address(graph))
