"""Contents of a version: tables as CSVW (as in the Open Dataset Archive), RDF as VoID, maps with their box.

All of it is named by fragments of the file's IRI; the same profile always gives the same statements.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

import msgspec
from pyoxigraph import Literal, NamedNode

from tamias.content.zstd import zstd
from tamias.database.columns import stored_json
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.dcat.joins import JoinCandidate
from tamias.features.dcat.terms import CatalogueBases, GraphBuilder, Object, address, text, typed
from tamias.model import profile as p
from tamias.model.profile import Profile
from tamias.model.vocabulary import word

_COMPRESSOR: Final = zstd.ZstdCompressor(level=3)
"""One for all: to make another takes as long as to compress a small profile. It locks itself."""
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_]+")
"""What may not stand in the name of a column."""
_NUMBER: Final = re.compile("#(.?)##0(?:(.)0)?")
"""`#.##0,0`: the sign between groups and the decimal sign."""
MOST_TABLES: Final = 50
MOST_COLUMNS: Final = 500
"""Of one table: what has more is no table that a query asks for by column."""


def describe_profile(builder: GraphBuilder, file: NamedNode, profile: p.Profile) -> None:
    """Add what is known of the content of a file."""
    _describe_tables(builder, file, profile.tables[:MOST_TABLES])
    if profile.statements is not None:
        _describe_statements(builder, file, profile.statements)
    if profile.geography is not None:
        _describe_place(builder, file, profile.geography)


def describe_joins(builder: GraphBuilder, joins: Sequence[JoinCandidate], bases: CatalogueBases) -> None:
    """Columns whose values are, as it seems, among those of another."""
    for join in joins:
        one, other = (
            _column_node(bases.file_of(column.resource, column.version), column.table, column.number)
            for column in (join.of, join.within)
        )
        builder.add(one, "arc:valuesWithin", other)


def _describe_tables(builder: GraphBuilder, file: NamedNode, tables: Sequence[p.TableProfile]) -> None:
    """A table, or a group where there are several, such as the sheets of a workbook."""
    group = _part(file, "tables")
    if len(tables) > 1:
        builder.are([group], "csvw:TableGroup")
        builder.add(group, "csvw:url", file)
    for number, table in enumerate(tables, 1):
        node = _part(file, f"table-{number}")
        if len(tables) > 1:
            builder.add(group, "csvw:table", node)
        _describe_table(builder, file, node, number, table)


def _describe_table(
    builder: GraphBuilder, file: NamedNode, node: NamedNode, number: int, table: p.TableProfile
) -> None:
    builder.are([node], "csvw:Table")
    values: dict[str, Object | None] = {
        "csvw:url": file,
        "dct:title": text(table.name),
        "arc:rows": typed(table.rows, "integer"),
        "arc:columns": typed(table.width, "integer"),
    }
    builder.each(node, values)
    _describe_dialect(builder, node, table)
    schema = NamedNode(f"{node.value}-schema")
    builder.typed(node, "csvw:tableSchema", schema, "csvw:Schema")
    for column in table.columns[:MOST_COLUMNS]:
        _describe_column(builder, schema, _column_node(file, number, column.number), column)
    for place in range(table.width + 1, min(table.width + table.unnamed, MOST_COLUMNS) + 1):
        unnamed = _column_node(file, number, place)
        _name_column(builder, schema, unnamed, f"column_{place}")
        builder.add(unnamed, "csvw:suppressOutput", typed("true", "boolean"))


def _describe_dialect(builder: GraphBuilder, node: NamedNode, table: p.TableProfile) -> None:
    if table.delimiter is None:
        return
    dialect = NamedNode(f"{node.value}-dialect")
    builder.typed(node, "csvw:dialect", dialect, "csvw:Dialect")
    values: dict[str, Object | None] = {
        "csvw:encoding": text(table.encoding),
        "csvw:delimiter": text(table.delimiter),
        "csvw:quoteChar": text(table.quote),
        "csvw:header": typed("true" if table.header else "false", "boolean"),
        "csvw:skipRows": typed(table.skipped, "nonNegativeInteger") if table.skipped else None,
    }
    builder.each(dialect, values)


def _describe_column(
    builder: GraphBuilder, schema: NamedNode, node: NamedNode, column: p.ColumnProfile
) -> None:
    """The datatype twice: as CSVW has it, and by its short name, as the Open Dataset Archive did."""
    _name_column(builder, schema, node, column.name)
    builder.add(node, "csvw:datatype", text(column.read_as))
    builder.add(node, "csvw:datatype", NamedNode(column.datatype_iri))
    if not column.invalid:
        for null in ("", *column.null_words) if column.null_words else ():
            builder.add(node, "csvw:null", Literal(null))
        if column.format is not None:
            _describe_format(builder, node, column.read_as, column.format)
    if column.meaning is not None and column.meaning.range is not None:
        builder.add(node, "rdfs:range", NamedNode(column.meaning.range))


def _name_column(builder: GraphBuilder, schema: NamedNode, node: NamedNode, header: str) -> None:
    """Write the header as the title; the name is made of it as CSVW makes it where only a title is given."""
    builder.typed(schema, "csvw:column", node, "csvw:Column")
    builder.add(node, "csvw:title", text(header))
    name = _UNFIT.sub(lambda found: quote(found[0], safe=""), header)
    builder.add(node, "csvw:name", text(f"%5F{name[1:]}" if name.startswith("_") else name))


def _describe_format(builder: GraphBuilder, node: NamedNode, base: str, form: str) -> None:
    """Describe how values are written: a pattern, or the signs in numbers."""
    datatype = NamedNode(f"{node.value}-datatype")
    builder.typed(node, "csvw:datatype", datatype, "csvw:Datatype")
    builder.add(datatype, "csvw:base", text(base))
    if (number := _NUMBER.fullmatch(form)) is None:
        builder.add(datatype, "csvw:format", text(form))
        return
    signs = NamedNode(f"{node.value}-format")
    builder.typed(datatype, "csvw:format", signs, "csvw:NumericFormat")
    group, decimal = number.groups()
    builder.add(signs, "csvw:decimalChar", text(decimal or ("," if group == "." else ".")))
    builder.add(signs, "csvw:groupChar", text(group))


def _describe_statements(builder: GraphBuilder, file: NamedNode, found: p.StatementCounts) -> None:
    builder.are([file], "void:Dataset")
    counts = {
        "void:triples": found.triples,
        "void:distinctSubjects": found.subjects,
        "void:distinctObjects": found.objects,
        "void:classes": found.class_count,
        "void:properties": found.property_count,
    }
    builder.each(file, {name: typed(count, "integer") for name, count in counts.items()})
    _describe_partitions(builder, file, "class", "void:entities", found.classes)
    _describe_partitions(builder, file, "property", "void:triples", found.properties)


def _describe_partitions(
    builder: GraphBuilder, file: NamedNode, kind: str, measure: str, usages: Sequence[p.TermUsage]
) -> None:
    for number, usage in enumerate(usages, 1):
        named = address(usage.iri)
        if named is not None:
            part = _part(file, f"{kind}-{number}")
            builder.add(file, f"void:{kind}Partition", part)
            builder.each(part, {f"void:{kind}": named, measure: typed(usage.count, "integer")})


def _describe_place(builder: GraphBuilder, file: NamedNode, geography: p.Geography) -> None:
    """The box around what is mapped, where it is in degrees."""
    if geography.bbox is None or geography.crs is not None:
        return
    west, south, east, north = geography.bbox
    corners = ((west, south), (east, south), (east, north), (west, north), (west, south))
    ring = ", ".join(f"{x:.12g} {y:.12g}" for x, y in corners)
    place = _part(file, "place")
    builder.typed(file, "dct:spatial", place, "dct:Location")
    builder.add(place, "dcat:bbox", Literal(f"POLYGON(({ring}))", datatype=word("geo:wktLiteral")))


def _column_node(file: NamedNode, table: int, column: int) -> NamedNode:
    """Columns of the first table are named as in the Open Dataset Archive: FILE#1, FILE#2, ..."""
    return _part(file, str(column) if table == 1 else f"table-{table}-{column}")


def _part(file: NamedNode, name: str) -> NamedNode:
    return NamedNode(f"{file.value}#{name}")


_SQL = statements("tamias.features.dcat", "stored_profiles.sql")


class Unprofiled(msgspec.Struct, frozen=True):
    """A body that nobody has looked into yet."""

    sha256: str
    media_type: str | None
    url: str
    declared: str | None = None
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
    """Return a profile as it is stored without its sketches, and what is searched in its tables, as JSON.

    Names of columns are searched, and what joins are found by.
    """
    names = ("name", "number", "distinct", "sketch")
    searched = [
        {"columns": [{name: getattr(column, name) for name in names} for column in table.columns]}
        for table in profile.tables
    ]
    tables = tuple(
        msgspec.structs.replace(
            table,
            columns=tuple(msgspec.structs.replace(column, sketch=b"") for column in table.columns),
        )
        for table in profile.tables
    )
    packed = msgspec.msgpack.encode(msgspec.structs.replace(profile, tables=tables))
    compressed = _COMPRESSOR.compress(packed, zstd.ZstdCompressor.FLUSH_FRAME)
    return compressed, stored_json(searched) if searched else None


def stored_profile(profile: object, packed: bytes | None) -> Profile:
    """A profile as it is stored: packed, or as JSON by earlier versions of Tamias."""
    if packed is None:
        return msgspec.convert(profile, Profile)
    return msgspec.msgpack.decode(zstd.decompress(packed), type=Profile)


def read_profile(session: Session, sha256: str) -> Profile | None:
    """Return the profile of a body, if there is one."""
    row = session.fetch_one(_SQL["read_profile"], {"sha256": bytes.fromhex(sha256)})
    return stored_profile(*row) if row else None
