"""Looks for join candidates among the columns of all current tables, when there are new ones."""

from tamias.analyse.profile.joins import ColumnSketch, Join, candidates
from tamias.archive.catalogue.joins import (
    JoinCandidate,
    TableColumn,
    keep_joins,
    newest_table,
    sketched_columns,
)
from tamias.archive.sources.rates import read_figure, write_figure
from tamias.database.connect import Session

_FIGURE = "joins_of_tables_until"
MOST_JOINS = 100_000
"""That are kept, the surest."""


def find_joins(session: Session) -> int | None:
    """Returns how many there are; None when no table is newer than those that were compared last."""
    newest = newest_table(session)
    if newest <= (read_figure(session, _FIGURE) or 0):
        return None
    columns: dict[tuple[str, str], TableColumn] = {}
    sketches = []
    for each in sketched_columns(session):
        column = each.column
        table, name = f"{column.resource}#{column.table}", str(column.number)
        columns[table, name] = column
        sketches.append(ColumnSketch(table=table, column=name, distinct=column.distinct, sketch=each.sketch))
    joins = [_kept(join, columns) for join in candidates(sketches)[:MOST_JOINS]]
    keep_joins(session, joins)
    write_figure(session, _FIGURE, newest, session.now())
    return len(joins)


def _kept(join: Join, columns: dict[tuple[str, str], TableColumn]) -> JoinCandidate:
    return JoinCandidate(
        of=columns[join.of.table, join.of.column],
        within=columns[join.within.table, join.within.column],
        containment=join.containment,
        shared=join.shared,
    )
