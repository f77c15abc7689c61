"""Rows that are copied from elsewhere: triggers would count them twice, and tell of them as news."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

_WITH_TRIGGERS = """
SELECT DISTINCT pg_class.relname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = pg_trigger.tgrelid
WHERE pg_class.relnamespace = 'tamias'::regnamespace AND pg_class.relkind = 'r'
  AND NOT pg_trigger.tgisinternal AND pg_class.relname = ANY(%s::text[])
ORDER BY 1
"""


@contextmanager
def without_triggers(cursor: psycopg.Cursor[tuple[Any, ...]], tables: Sequence[str]) -> Iterator[None]:
    """Switch the triggers of these tables off, and on again.

    Only of tables that have some: a table that is distributed over a Citus cluster cannot, nor be asked to.
    """
    found = [row[0] for row in cursor.execute(_WITH_TRIGGERS, [list(tables)]).fetchall()]
    for name in found:
        cursor.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(sql.Identifier("tamias", name)))
    yield
    for name in found:
        cursor.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(sql.Identifier("tamias", name)))
