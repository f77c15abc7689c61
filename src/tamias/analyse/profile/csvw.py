"""A profile in RDF: CSVW for tables, VoID for RDF, and the terms that the Open Dataset Archive coined."""

from collections.abc import Iterator
from typing import Final

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from tamias.model.profile import ColumnProfile, Geography, Profile, Statements, TableProfile, Usage

ARCHIVER: Final = "https://archiver.ai.wu.ac.at/ns/csvw#"
"""Of `arc:rows` and `arc:columns`, unless configured."""

CSVW: Final = "http://www.w3.org/ns/csvw#"
VOID: Final = "http://rdfs.org/ns/void#"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
DCT: Final = "http://purl.org/dc/terms/"
DCAT: Final = "http://www.w3.org/ns/dcat#"
_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_RANGE: Final = NamedNode("http://www.w3.org/2000/01/rdf-schema#range")
_WKT: Final = NamedNode("http://www.opengis.net/ont/geosparql#wktLiteral")

Term = NamedNode | Literal
Statement = tuple[NamedNode, NamedNode, Term]


def profile_quads(
    profile: Profile, version: str, *, graph: NamedNode | None = None, terms: str = ARCHIVER
) -> list[Quad]:
    """What a profile says about a version, by its IRI. The same profile always gives the same quads.

    Everything in it is named by a fragment of the version's IRI: columns of the first table are `#1`, `#2`.
    """
    named = _Description(version, terms)
    statements = [*named.tables(profile.tables)]
    if profile.statements is not None:
        statements += named.statements(profile.statements)
    if profile.geography is not None:
        statements += named.place(profile.geography)
    return [Quad(s, p, o, graph or DefaultGraph()) for s, p, o in statements]


class _Description:
    """Writes statements about one version."""

    def __init__(self, version: str, terms: str) -> None:
        self._version = NamedNode(version)
        self._terms = terms

    def tables(self, tables: tuple[TableProfile, ...]) -> Iterator[Statement]:
        """A table, or a group where there are several, such as the sheets of a workbook."""
        if len(tables) > 1:
            group = self._part("tables")
            yield group, _TYPE, _csvw("TableGroup")
            yield group, _csvw("url"), self._version
            for number in range(1, len(tables) + 1):
                yield group, _csvw("table"), self._part(f"table-{number}")
        for number, table in enumerate(tables, 1):
            yield from self._table(table, number)

    def _table(self, table: TableProfile, number: int) -> Iterator[Statement]:
        node, schema = self._part(f"table-{number}"), self._part(f"table-{number}-schema")
        yield node, _TYPE, _csvw("Table")
        yield node, _csvw("url"), self._version
        yield node, NamedNode(DCT + "title"), Literal(table.name)
        yield node, NamedNode(self._terms + "rows"), Literal(table.rows)
        yield node, NamedNode(self._terms + "columns"), Literal(table.width)
        yield node, _csvw("tableSchema"), schema
        yield schema, _TYPE, _csvw("Schema")
        if table.delimiter is not None:
            yield node, _csvw("dialect"), self._part(f"table-{number}-dialect")
            yield from self._dialect(table, self._part(f"table-{number}-dialect"))
        for column in table.columns:
            at = self._part(str(column.number) if number == 1 else f"table-{number}-{column.number}")
            yield schema, _csvw("column"), at
            yield from _column(column, at)

    def _dialect(self, table: TableProfile, dialect: NamedNode) -> Iterator[Statement]:
        yield dialect, _TYPE, _csvw("Dialect")
        yield dialect, _csvw("encoding"), Literal(table.encoding or "utf-8")
        yield dialect, _csvw("delimiter"), Literal(table.delimiter or ",")
        yield dialect, _csvw("header"), Literal(table.header)
        if table.quote is not None:
            yield dialect, _csvw("quoteChar"), Literal(table.quote)
        if table.skipped:
            yield dialect, _csvw("skipRows"), Literal(table.skipped)

    def statements(self, found: Statements) -> Iterator[Statement]:
        """The figures of RDF."""
        yield self._version, _TYPE, _void("Dataset")
        yield self._version, _void("triples"), Literal(found.triples)
        yield self._version, _void("distinctSubjects"), Literal(found.subjects)
        yield self._version, _void("distinctObjects"), Literal(found.objects)
        yield self._version, _void("classes"), Literal(found.class_count)
        yield self._version, _void("properties"), Literal(found.property_count)
        yield from self._partitions("class", "entities", found.classes)
        yield from self._partitions("property", "triples", found.properties)

    def _partitions(self, kind: str, measure: str, usages: tuple[Usage, ...]) -> Iterator[Statement]:
        for number, usage in enumerate(usages, 1):
            iri = _iri(usage.iri)
            if iri is not None:
                part = self._part(f"{kind}-{number}")
                yield self._version, _void(f"{kind}Partition"), part
                yield part, _void(kind), iri
                yield part, _void(measure), Literal(usage.count)

    def place(self, geography: Geography) -> Iterator[Statement]:
        """The box around what is mapped, where it is in degrees."""
        if geography.bbox is None or geography.crs is not None:
            return
        west, south, east, north = geography.bbox
        corners = ((west, south), (east, south), (east, north), (west, north), (west, south))
        ring = ", ".join(f"{x:.12g} {y:.12g}" for x, y in corners)
        place = self._part("place")
        yield self._version, NamedNode(DCT + "spatial"), place
        yield place, _TYPE, NamedNode(DCT + "Location")
        yield place, NamedNode(DCAT + "bbox"), Literal(f"POLYGON(({ring}))", datatype=_WKT)

    def _part(self, name: str) -> NamedNode:
        return NamedNode(f"{self._version.value}#{name}")


def _column(column: ColumnProfile, at: NamedNode) -> Iterator[Statement]:
    """The datatype twice: as CSVW has it, and by its short name, as the Open Dataset Archive did."""
    yield at, _TYPE, _csvw("Column")
    yield at, _csvw("name"), Literal(column.name)
    yield at, _csvw("title"), Literal(column.name)
    yield at, _csvw("datatype"), NamedNode(column.datatype_iri)
    yield at, _csvw("datatype"), Literal(column.datatype)
    if column.format is not None:
        yield at, _csvw("format"), Literal(column.format)
    if column.meaning is not None and column.meaning.range is not None:
        yield at, _RANGE, NamedNode(column.meaning.range)


def _csvw(name: str) -> NamedNode:
    return NamedNode(CSVW + name)


def _void(name: str) -> NamedNode:
    return NamedNode(VOID + name)


def _iri(text: str) -> NamedNode | None:
    """None for what a lenient reader let pass, and no writer could say."""
    try:
        return NamedNode(text)
    except ValueError:
        return None
