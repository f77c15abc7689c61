"""Tables in versions as CSVW, as the Open Dataset Archive has it: rows, columns, dialect, ranges."""

from collections.abc import Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from tamias.archive.catalogue.terms import Object, Statements, text, typed
from tamias.model.profile import ColumnProfile, TableProfile

MOST_TABLES: Final = 50
MOST_COLUMNS: Final = 500
"""Of one table: what has more is no table that a query asks for by column."""


def table_quads(file: NamedNode, tables: Sequence[TableProfile], graph: NamedNode) -> list[Quad]:
    """What is known of the tables in a file."""
    told = Statements(graph)
    describe_tables(told, file, tables)
    return told.quads


def describe_tables(told: Statements, file: NamedNode, tables: Sequence[TableProfile]) -> None:
    """The same, among other statements."""
    for number, table in enumerate(tables[:MOST_TABLES], 1):
        node = NamedNode(f"{file.value}#table-{number}")
        told.typed(node, "csvw:url", file)
        told.are([node], "csvw:Table")
        told.each(
            node,
            {
                "csvw:name": text(table.name),
                "arc:rows": typed(table.rows, "integer"),
                "arc:columns": typed(table.width, "integer"),
            },
        )
        _describe_dialect(told, node, table)
        schema = NamedNode(f"{node.value}-schema")
        told.typed(node, "csvw:tableSchema", schema, "csvw:Schema")
        # The columns of the first table are named as in the Open Dataset Archive: FILE#1, FILE#2, ...
        first = f"{file.value}#" if number == 1 else f"{node.value}-"
        for column in table.columns[:MOST_COLUMNS]:
            _describe_column(told, schema, NamedNode(f"{first}{column.number}"), column)


def _describe_dialect(told: Statements, node: NamedNode, table: TableProfile) -> None:
    if table.delimiter is None:
        return
    dialect = NamedNode(f"{node.value}-dialect")
    told.typed(node, "csvw:dialect", dialect, "csvw:Dialect")
    values: dict[str, Object | None] = {
        "csvw:encoding": text(table.encoding),
        "csvw:delimiter": text(table.delimiter),
        "csvw:quoteChar": text(table.quote),
        "csvw:header": _truth(table.header),
        "csvw:skipRows": typed(table.skipped, "nonNegativeInteger") if table.skipped else None,
    }
    told.each(dialect, values)


def _describe_column(told: Statements, schema: NamedNode, node: NamedNode, column: ColumnProfile) -> None:
    told.typed(schema, "csvw:column", node, "csvw:Column")
    told.each(node, {"csvw:name": text(column.name), "csvw:datatype": text(column.datatype)})
    if column.meaning is not None and column.meaning.range is not None:
        told.add(node, "rdfs:range", NamedNode(column.meaning.range))


def _truth(value: bool) -> Literal:
    return typed("true" if value else "false", "boolean")
