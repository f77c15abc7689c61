"""Metrics of quality: name, dimension, definition and greatest value of each."""

from typing import Final

import msgspec


class Metric(msgspec.Struct, frozen=True):
    """A metric; those of Portal Watch have its names."""

    name: str
    label: str
    dimension: str
    definition: str
    most: float = 1.0


def _share(name: str, label: str, dimension: str, of_what: str) -> Metric:
    return Metric(name, label, dimension, f"{of_what}, from 0 to 1")


_PORTAL_WATCH: Final = (
    _share("exac", "Access", "existence", "Share of the distributions with an access or download URL"),
    _share("exdi", "Discovery", "existence", "Share of title, description and keywords that are there"),
    _share("exco", "Contact", "existence", "Whether there is a contact point or a publisher"),
    _share("exri", "Rights", "existence", "Share of the distributions with a licence"),
    _share(
        "expr", "Preservation", "existence", "Share of formats, media types and byte sizes that are there"
    ),
    _share("exda", "Date", "existence", "Share of dates of issue and change that are there"),
    _share("exsp", "Spatial", "existence", "Whether the spatial coverage is stated"),
    _share("exte", "Temporal", "existence", "Whether the temporal coverage is stated"),
    _share("coac", "Access URL", "conformance", "Share of the distributions whose address is a web address"),
    _share("coce", "Contact email", "conformance", "Whether an email address of the contact is one"),
    _share("cocu", "Contact URL", "conformance", "Whether a page of the contact is a web address"),
    _share("coda", "Date format", "conformance", "Share of all possible dates that are there and readable"),
    _share("coli", "Licence", "conformance", "Share of the distributions with a licence of the public lists"),
    _share("cofo", "File format", "conformance", "Share of the distributions with a registered media type"),
    _share("opfo", "Open format", "open data", "Share of the distributions in an open format"),
    _share("opma", "Machine-readable", "open data", "Share of the distributions that programs can read"),
    _share("opli", "Open licence", "open data", "Share of the distributions with an open licence"),
    _share("reme", "Description", "retrievability", "Whether the catalogue still has the description"),
    _share(
        "rere", "Data", "retrievability", "Share of the tried distributions that the latest visit could fetch"
    ),
    _share("acfo", "Format", "accuracy", "Share of the distributions that have the stated format"),
    _share("acsi", "Size", "accuracy", "Share of the distributions that have the stated size, to 1 %"),
)


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

METRICS: Final = {metric.name: metric for metric in (*_PORTAL_WATCH, *_MQA)}
