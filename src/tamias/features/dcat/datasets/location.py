"""Places: an IRI, a name, a geometry or a box, recognised from one text."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from pyoxigraph import Literal, NamedNode

from tamias.features.dcat.datasets.terms import DcatStatements, text_literal
from tamias.model.dataset import NamedPlace
from tamias.model.vocabulary import sound_iri, word

_NUMBER = r"[-+]?\d{1,12}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?"
_FOUR_NUMBERS = re.compile(rf"\s*{_NUMBER}(?:\s*,\s*{_NUMBER}|\s+{_NUMBER}){{3}}\s*")
_NUMBERS = re.compile(_NUMBER)
_WKT = re.compile(
    r"\s*(?:<[^<>\s]{1,200}>\s*)?"
    r"(?:(?:MULTI)?(?:POINT|LINESTRING|POLYGON)|GEOMETRYCOLLECTION|ENVELOPE)\s*Z?\s*\([-+0-9.eE,()\s]*\)\s*",
    re.IGNORECASE,
)
_PAIR = re.compile(rf"({_NUMBER})\s+({_NUMBER})")
_CRS = re.compile(r"\s*<[^<>\s]{1,200}>")
_LONGEST_GEOMETRY = 1_000_000


def describe_location(graph: DcatStatements, subject: NamedNode, text: str, node: NamedNode) -> None:
    """Describe a `dct:Location`: an IRI as it stands, else `node` with what the text says.

    A geometry stays as it stands (GeoSPARQL), with its bounding box in `dcat:bbox`, a point in
    `dcat:centroid`: for `locn:geometry` the published shapes disagree whether it is a literal or a node.
    """
    text = text.strip()
    if iri := sound_iri(text):
        graph.typed(subject, "dct:spatial", iri, "dct:Location")
    elif text:
        graph.typed(subject, "dct:spatial", node, "dct:Location")
        _describe(graph, node, text)


def describe_place(graph: DcatStatements, subject: NamedNode, place: NamedPlace, node: NamedNode) -> None:
    """Describe a place; its IRI has its names only, since one place may have many geometries."""
    iri = sound_iri(place.iri)
    if iri:
        graph.typed(subject, "dct:spatial", iri, "dct:Location")
    shapes = [text for text in (place.geometry, place.bbox, place.centroid) if text]
    if shapes or (place.names and not iri):
        graph.typed(subject, "dct:spatial", node, "dct:Location")
    for language, name in place.names:
        graph.add(iri or node, "skos:prefLabel", text_literal(name, language or graph.language))
    if place.geometry:
        _describe(graph, node, place.geometry, boxed=not place.bbox)
    for predicate, text in (("dcat:bbox", place.bbox), ("dcat:centroid", place.centroid)):
        if text:
            graph.add(node, predicate, _shape(text))


def _shape(text: str) -> Literal:
    if text.startswith("{") and _geojson_points(text):
        return Literal(text, datatype=word("geo:geoJSONLiteral"))
    return _wkt(text) if _WKT.fullmatch(text) else text_literal(text)


def _describe(graph: DcatStatements, node: NamedNode, text: str, *, boxed: bool = True) -> None:
    if len(text) <= _LONGEST_GEOMETRY:
        if _FOUR_NUMBERS.fullmatch(text):
            graph.add(node, "dcat:bbox", _wkt(_box(*map(float, _NUMBERS.findall(text)))))
            return
        if text.startswith("{") and (points := _geojson_points(text)):
            literal = Literal(text, datatype=word("geo:geoJSONLiteral"))
            _describe_geometry(graph, node, literal, points if boxed else [])
            return
        if _WKT.fullmatch(text) and (points := _wkt_points(text)):
            _describe_geometry(graph, node, _wkt(text), points if boxed else [])
            return
    graph.add(node, "skos:prefLabel", text_literal(text, graph.language))


def _describe_geometry(
    graph: DcatStatements, node: NamedNode, geometry: Literal, points: list[tuple[float, float]]
) -> None:
    crs = _CRS.match(geometry.value)
    prefix = crs[0].strip() + " " if crs else ""
    shape = NamedNode(node.value + "/geometry")
    graph.typed(node, "geo:hasGeometry", shape, "geo:Geometry")
    graph.add(
        shape, "geo:asWKT" if geometry.datatype == word("geo:wktLiteral") else "geo:asGeoJSON", geometry
    )
    if not points:
        return
    if len(points) == 1:
        graph.add(node, "dcat:centroid", _wkt(f"{prefix}POINT({points[0][0]:.10g} {points[0][1]:.10g})"))
        return
    xs, ys = [x for x, _ in points], [y for _, y in points]
    graph.add(node, "dcat:bbox", _wkt(prefix + _box(min(xs), min(ys), max(xs), max(ys))))


def _geojson_points(text: str) -> list[tuple[float, float]]:
    try:
        geometry = msgspec.json.decode(text.encode("utf-8", "replace"))
        return list(_pairs(_coordinates(geometry)))
    except (msgspec.DecodeError, RecursionError):
        return []


def _coordinates(geometry: Any) -> Any:
    if not isinstance(geometry, dict):
        return None
    if isinstance(inner := geometry.get("geometry"), dict):
        return inner.get("coordinates")
    return geometry.get("coordinates")


def _pairs(coordinates: Any) -> Iterator[tuple[float, float]]:
    if not isinstance(coordinates, list) or not coordinates:
        return
    if len(coordinates) >= 2 and all(isinstance(each, int | float) for each in coordinates):
        yield float(coordinates[0]), float(coordinates[1])
        return
    for each in coordinates:
        yield from _pairs(each)


def _wkt_points(text: str) -> list[tuple[float, float]]:
    inside = _CRS.sub("", text, count=1)
    if inside.strip().upper().startswith("ENVELOPE"):
        return []
    return [(float(x), float(y)) for x, y in _PAIR.findall(inside)]


def box_polygon(corners: Sequence[str]) -> str | None:
    """Return the polygon of west, south, east and north; None where one of them is no number.

    >>> box_polygon(["8", "47", "9", "48"]), box_polygon(["8", "47", "east", "48"])
    ('POLYGON((8 47,9 47,9 48,8 48,8 47))', None)
    """
    if len(corners) != 4 or not all(map(is_number, corners)):
        return None
    return _ring(*(corner.strip() for corner in corners))


def is_number(text: str) -> bool:
    """Return whether a text is a number, as coordinates are."""
    return _NUMBERS.fullmatch(text.strip()) is not None


def _box(*sides: float) -> str:
    return _ring(*(f"{number:.10g}" for number in sides))


def _ring(west: str, south: str, east: str, north: str) -> str:
    return f"POLYGON(({west} {south},{east} {south},{east} {north},{west} {north},{west} {south}))"


def _wkt(text: str) -> Literal:
    return Literal(text, datatype=word("geo:wktLiteral"))
