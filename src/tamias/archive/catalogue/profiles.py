"""What is in a version: tables as CSVW, as the Open Dataset Archive has it, RDF as VoID, maps with their box.

All of it is named by fragments of the file's IRI; the same profile always gives the same statements.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from backports.zstd import ZstdCompressor, decompress
from pyoxigraph import Literal, NamedNode, Quad

from tamias.archive.catalogue.joins import JoinCandidate
from tamias.archive.catalogue.terms import (
    CatalogueBases,
    GraphBuilder,
    Object,
    address,
    text,
    typed,
    word,
)
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model import profile as p
from tamias.model.profile import Profile

_COMPRESSOR: Final = ZstdCompressor(level=3)
"""One for all: to make another takes as long as to compress a small profile. It locks itself."""
MOST_TABLES: Final = 50
MOST_COLUMNS: Final = 500
"""Of one table: what has more is no table that a query asks for by column."""


def profile_quads(file: NamedNode, profile: p.Profile, graph: NamedNode) -> list[Quad]:
    """All that is known of the content of a file."""
    told = GraphBuilder(graph)
    describe_profile(told, file, profile)
    return told.quads


def describe_profile(told: GraphBuilder, file: NamedNode, profile: p.Profile) -> None:
    """The same, among other statements."""
    _describe_tables(told, file, profile.tables[:MOST_TABLES])
    if profile.statements is not None:
        _describe_statements(told, file, profile.statements)
    if profile.geography is not None:
        _describe_place(told, file, profile.geography)


def describe_joins(told: GraphBuilder, joins: Sequence[JoinCandidate], bases: CatalogueBases) -> None:
    """Columns whose values are, as it seems, among those of another."""
    for join in joins:
        one, other = (
            _column_node(bases.file_of(column.resource, column.version), column.table, column.number)
            for column in (join.of, join.within)
        )
        told.add(one, "arc:valuesWithin", other)


def _describe_tables(told: GraphBuilder, file: NamedNode, tables: Sequence[p.TableProfile]) -> None:
    """A table, or a group where there are several, such as the sheets of a workbook."""
    group = _part(file, "tables")
    if len(tables) > 1:
        told.are([group], "csvw:TableGroup")
        told.add(group, "csvw:url", file)
    for number, table in enumerate(tables, 1):
        node = _part(file, f"table-{number}")
        if len(tables) > 1:
            told.add(group, "csvw:table", node)
        _describe_table(told, file, node, number, table)


def _describe_table(
    told: GraphBuilder, file: NamedNode, node: NamedNode, number: int, table: p.TableProfile
) -> None:
    told.are([node], "csvw:Table")
    values: dict[str, Object | None] = {
        "csvw:url": file,
        "csvw:name": text(table.name),
        "arc:rows": typed(table.rows, "integer"),
        "arc:columns": typed(table.width, "integer"),
    }
    told.each(node, values)
    _describe_dialect(told, node, table)
    schema = NamedNode(f"{node.value}-schema")
    told.typed(node, "csvw:tableSchema", schema, "csvw:Schema")
    for column in table.columns[:MOST_COLUMNS]:
        _describe_column(told, schema, _column_node(file, number, column.number), column)


def _describe_dialect(told: GraphBuilder, node: NamedNode, table: p.TableProfile) -> None:
    if table.delimiter is None:
        return
    dialect = NamedNode(f"{node.value}-dialect")
    told.typed(node, "csvw:dialect", dialect, "csvw:Dialect")
    values: dict[str, Object | None] = {
        "csvw:encoding": text(table.encoding),
        "csvw:delimiter": text(table.delimiter),
        "csvw:quoteChar": text(table.quote),
        "csvw:header": typed("true" if table.header else "false", "boolean"),
        "csvw:skipRows": typed(table.skipped, "nonNegativeInteger") if table.skipped else None,
    }
    told.each(dialect, values)


def _describe_column(told: GraphBuilder, schema: NamedNode, node: NamedNode, column: p.ColumnProfile) -> None:
    """The datatype twice: as CSVW has it, and by its short name, as the Open Dataset Archive did."""
    told.typed(schema, "csvw:column", node, "csvw:Column")
    told.each(
        node,
        {
            "csvw:name": text(column.name),
            "csvw:datatype": text(column.read_as),
            "csvw:format": None if column.invalid else text(column.format),
        },
    )
    told.add(node, "csvw:datatype", NamedNode(column.datatype_iri))
    if column.meaning is not None and column.meaning.range is not None:
        told.add(node, "rdfs:range", NamedNode(column.meaning.range))


def _describe_statements(told: GraphBuilder, file: NamedNode, found: p.StatementCounts) -> None:
    told.are([file], "void:Dataset")
    counts = {
        "void:triples": found.triples,
        "void:distinctSubjects": found.subjects,
        "void:distinctObjects": found.objects,
        "void:classes": found.class_count,
        "void:properties": found.property_count,
    }
    told.each(file, {name: typed(count, "integer") for name, count in counts.items()})
    _describe_partitions(told, file, "class", "void:entities", found.classes)
    _describe_partitions(told, file, "property", "void:triples", found.properties)


def _describe_partitions(
    told: GraphBuilder, file: NamedNode, kind: str, measure: str, usages: Sequence[p.TermUsage]
) -> None:
    for number, usage in enumerate(usages, 1):
        named = address(usage.iri)
        if named is not None:
            part = _part(file, f"{kind}-{number}")
            told.add(file, f"void:{kind}Partition", part)
            told.each(part, {f"void:{kind}": named, measure: typed(usage.count, "integer")})


def _describe_place(told: GraphBuilder, file: NamedNode, geography: p.Geography) -> None:
    """The box around what is mapped, where it is in degrees."""
    if geography.bbox is None or geography.crs is not None:
        return
    west, south, east, north = geography.bbox
    corners = ((west, south), (east, south), (east, north), (west, north), (west, south))
    ring = ", ".join(f"{x:.12g} {y:.12g}" for x, y in corners)
    place = _part(file, "place")
    told.typed(file, "dct:spatial", place, "dct:Location")
    told.add(place, "dcat:bbox", Literal(f"POLYGON(({ring}))", datatype=word("geo:wktLiteral")))


def _column_node(file: NamedNode, table: int, column: int) -> NamedNode:
    """Columns of the first table are named as in the Open Dataset Archive: FILE#1, FILE#2, ..."""
    return _part(file, str(column) if table == 1 else f"table-{table}-{column}")


def _part(file: NamedNode, name: str) -> NamedNode:
    return NamedNode(f"{file.value}#{name}")


_SQL = statements("tamias.archive.catalogue", "stored_profiles.sql")


class Unprofiled(msgspec.Struct, frozen=True):
    """A body that nobody has looked into yet."""

    sha256: str
    media_type: str | None
    url: str
    told_type: str | None = None
    """As the server says, with the charset that it declares."""


def unprofiled(session: Session, limit: int) -> list[Unprofiled]:
    """The newest bodies that wait for a profile."""
    session.execute(_SQL["forget_profiled"])
    return [Unprofiled(*row) for row in session.fetch_all(_SQL["unprofiled"], {"limit": limit})]


def keep_profiles(session: Session, profiles: Mapping[str, Profile], now: int) -> None:
    """Keeps what bodies hold: packed without its sketches; those with the names of columns, for queries."""
    rows: list[tuple[bytes, str, str | None, bytes | None]] = []
    for sha256, profile in profiles.items():
        digest = bytes.fromhex(sha256)
        packed, tables = pack_profile(profile)
        rows.append((digest, "content", None, packed))
        if tables is not None:
            rows.append((digest, "table", tables, None))
    if rows:
        names = ("sha256", "kind", "profile", "packed")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        session.execute(_SQL["keep_profiles"], {**columns, "now": now})


def pack_profile(profile: Profile) -> tuple[bytes, str | None]:
    """As it is stored, and what is looked up in its tables by itself, as JSON."""
    return _packed(profile), _json([_searched(table) for table in profile.tables]) if profile.tables else None


def _searched(table: p.TableProfile) -> dict[str, list[dict[str, object]]]:
    """What is looked up in a table's profile by itself: names of columns, and what joins are found by."""
    names = ("name", "number", "distinct", "sketch")
    return {"columns": [{name: getattr(column, name) for name in names} for column in table.columns]}


def _packed(profile: Profile) -> bytes:
    tables = tuple(
        msgspec.structs.replace(
            table,
            columns=tuple(msgspec.structs.replace(column, sketch=b"") for column in table.columns),
        )
        for table in profile.tables
    )
    packed = msgspec.msgpack.encode(msgspec.structs.replace(profile, tables=tables))
    return _COMPRESSOR.compress(packed, ZstdCompressor.FLUSH_FRAME)


def stored_profile(profile: object, packed: bytes | None) -> Profile:
    """A profile as it is stored: packed, or as JSON by earlier versions of Tamias."""
    if packed is None:
        return msgspec.convert(profile, Profile)
    return msgspec.msgpack.decode(decompress(packed), type=Profile)


def read_profile(session: Session, sha256: str) -> Profile | None:
    """What a body holds, if somebody has looked into it."""
    row = session.fetch_one(_SQL["read_profile"], {"sha256": bytes.fromhex(sha256)})
    return stored_profile(*row) if row else None


def _json(value: object) -> str:
    """As PostgreSQL can hold it: it has no NUL in text."""
    return msgspec.json.encode(value).decode().replace("\\u0000", "\\ufffd")
