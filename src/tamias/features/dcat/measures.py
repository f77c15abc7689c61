"""Measured quality as DQV: measurements of things, and the metrics and dimensions that they are of."""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec
from pyoxigraph import NamedNode, Quad

from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.dcat.terms import QUALITY, GraphBuilder, catalogue_graph, moment, text, typed
from tamias.model import vocabulary as v
from tamias.model.item import NEVER


class Metric(msgspec.Struct, frozen=True):
    """A metric; those of Portal Watch have its names."""

    name: str
    label: str
    dimension: str
    definition: str
    most: float = 1.0


_SHARES: Final = (
    ("exac", "Access", "existence", "Share of the distributions with an access or download URL"),
    ("exdi", "Discovery", "existence", "Share of title, description and keywords that are there"),
    ("exco", "Contact", "existence", "Whether there is a contact point or a publisher"),
    ("exri", "Rights", "existence", "Share of the distributions with a licence"),
    ("expr", "Preservation", "existence", "Share of formats, media types and byte sizes that are there"),
    ("exda", "Date", "existence", "Share of dates of issue and change that are there"),
    ("exsp", "Spatial", "existence", "Whether the spatial coverage is stated"),
    ("exte", "Temporal", "existence", "Whether the temporal coverage is stated"),
    ("coac", "Access URL", "conformance", "Share of the distributions whose address is a web address"),
    ("coce", "Contact email", "conformance", "Whether an email address of the contact is one"),
    ("cocu", "Contact URL", "conformance", "Whether a page of the contact is a web address"),
    ("coda", "Date format", "conformance", "Share of all possible dates that are there and readable"),
    ("coli", "Licence", "conformance", "Share of the distributions with a licence of the public lists"),
    ("cofo", "File format", "conformance", "Share of the distributions with a registered media type"),
    ("opfo", "Open format", "open data", "Share of the distributions in an open format"),
    ("opma", "Machine-readable", "open data", "Share of the distributions that programs can read"),
    ("opli", "Open licence", "open data", "Share of the distributions with an open licence"),
    ("reme", "Description", "retrievability", "Whether the catalogue still has the description"),
    ("rere", "Data", "retrievability", "Share of the tried distributions that the latest visit could fetch"),
    ("acfo", "Format", "accuracy", "Share of the distributions that have the stated format"),
    ("acsi", "Size", "accuracy", "Share of the distributions that have the stated size, to 1 %"),
)
"""The metrics of Portal Watch: name, label, dimension, and what each is a share of."""


def _points(dimension: str, most: int) -> Metric:
    words = f"Points for {dimension} in the European Metadata Quality Assessment, {most} at most"
    return Metric(f"mqa-{dimension}", dimension.capitalize(), "European MQA", words, most)


_MQA: Final = (
    _points("findability", 100),
    _points("accessibility", 100),
    _points("interoperability", 110),
    _points("reusability", 75),
    _points("contextuality", 20),
    Metric(
        "mqa", "MQA points", "European MQA", "All points of the Metadata Quality Assessment, 405 at most", 405
    ),
)

METRICS: Final = {
    metric.name: metric
    for metric in (
        *(Metric(name, label, kind, f"{of_what}, from 0 to 1") for name, label, kind, of_what in _SHARES),
        *_MQA,
    )
}


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
    for subject, *row in session.fetch_all(_SQL["read_measures"], {"subject": list(subjects), "at": at}):
        found[subject].append(Measure(*row))
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
