"""Measured quality as DQV: measurements of things, and the metrics and dimensions that they are of."""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256

import msgspec
from pyoxigraph import NamedNode, Quad

from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.dcat.metrics import METRICS
from tamias.features.dcat.terms import (
    QUALITY,
    GraphBuilder,
    catalogue_graph,
    moment,
    text,
    typed,
)
from tamias.model import vocabulary as v
from tamias.model.item import NEVER

_SQL = statements("tamias.features.dcat", "catalogue.sql")


class Measure(msgspec.Struct, frozen=True):
    """The value of a metric, and the time since which it has held."""

    metric: str
    value: float
    measured_at: int


def record_id(portal: str, record: str) -> str:
    """The name of a catalogue's description of a dataset, among the subjects of measures.

    >>> record_id("https://data.example.org/", "a")
    'db284026468d5b3ce923ccb7'
    """
    return sha256(f"{portal}\0{record}".encode("utf-8", "replace")).hexdigest()[:24]


def read_measures(session: Session, subjects: Sequence[str], at: int = NEVER) -> dict[str, list[Measure]]:
    """Return what is measured of each subject; with a time, what has been so since then."""
    found: dict[str, list[Measure]] = defaultdict(list)
    for subject, *row in session.fetch_all(_SQL["read_measures"], {"subject": list(subjects)}):
        measure = Measure(*row)
        if measure.measured_at <= at:
            found[subject].append(measure)
    return found


def metric_quads() -> list[Quad]:
    """Return statements on every metric and its dimension, in the graph of the whole catalogue."""
    builder = GraphBuilder(catalogue_graph())
    for metric in METRICS.values():
        node = _metric(metric.name)
        dimension = _metric(f"dimension-{metric.dimension}".lower().replace(" ", "-"))
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


def describe_measures(
    builder: GraphBuilder, node: NamedNode, measures: Sequence[Measure], scope: str = ""
) -> None:
    """Add the measurements of a thing; `scope` tells measures of one thing by several catalogues apart."""
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
