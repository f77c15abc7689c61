"""Measured quality as DQV: measurements of things, and the metrics and dimensions that they are of."""

from collections.abc import Sequence
from hashlib import sha256

from pyoxigraph import NamedNode, Quad

from tamias.archive.catalogue.terms import (
    QUALITY,
    GraphBuilder,
    catalogue_graph,
    moment,
    text,
    typed,
)
from tamias.archive.quality import METRICS, Measure
from tamias.model import vocabulary as v


def metric_quads() -> list[Quad]:
    """Return statements on every metric and its dimension, in the graph of the whole catalogue."""
    builder = GraphBuilder(catalogue_graph())
    for metric in METRICS.values():
        node, dimension = _metric(metric.name), _dimension(metric.dimension)
        builder.are([node], "dqv:Metric")
        builder.each(
            node,
            {
                "skos:prefLabel": text(metric.label),
                "skos:definition": text(metric.definition),
                "dqv:expectedDataType": NamedNode(v.XSD + "double"),
                "dqv:inDimension": dimension,
            },
        )
        builder.are([dimension], "dqv:Dimension")
        builder.add(dimension, "skos:prefLabel", text(metric.dimension.capitalize()))
    return list(dict.fromkeys(builder.quads))


def measure_quads(node: NamedNode, measures: Sequence[Measure], graph: NamedNode) -> list[Quad]:
    """Return the measurements of one thing."""
    builder = GraphBuilder(graph)
    describe_measures(builder, node, measures)
    return builder.quads


def describe_measures(
    builder: GraphBuilder, node: NamedNode, measures: Sequence[Measure], scope: str = ""
) -> None:
    """The same, among other statements; `scope` tells measures of one thing by several catalogues apart."""
    name = sha256(f"{scope}{node.value}".encode()).hexdigest()[:24]
    for measure in measures:
        it = NamedNode(f"{v.OWN_SPACE}measure:{name}:{measure.metric}")
        builder.typed(node, "dqv:hasQualityMeasurement", it, "dqv:QualityMeasurement")
        builder.each(
            it,
            {
                "dqv:isMeasurementOf": _metric(measure.metric),
                "dqv:computedOn": node,
                "dqv:value": typed(measure.value, "double"),
                "prov:generatedAtTime": moment(measure.measured_at),
            },
        )


def _metric(name: str) -> NamedNode:
    return NamedNode(QUALITY + name)


def _dimension(name: str) -> NamedNode:
    return NamedNode(QUALITY + "dimension-" + name.lower().replace(" ", "-"))
