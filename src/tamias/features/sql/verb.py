"""`tamias sql`: reads the archive's database."""

import csv
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from tamias.cli.console.options import CommonOptions, common, print_table, say_json
from tamias.cli.console.output import csv_cell
from tamias.model.errors import DatabaseError, TamiasError, UsageError

if TYPE_CHECKING:
    from tamias.database.connect import Connection, Cursor, Database

ROLE = "tamias_reader"
SECRET_TABLES = ["token", "webhook"]
"""Hashes of tokens and keys of webhooks are for nobody who reads."""
_SETTINGS = f"-c search_path=tamias,public -c role={ROLE} -c default_transaction_read_only=on"


@click.command()
@click.argument("statement", required=False)
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), help="Output format. [table]")
@common
def command(place: CommonOptions, statement: str | None, form: str | None) -> int:
    """Prints the rows of a SQL statement; without one, opens the database in psql. Nothing can be changed.

    JSON is a line for each row. The tables are in the schema tamias; those with secrets are left out.

    Example: tamias sql "SELECT host, count(*) FROM resource GROUP BY host ORDER BY 2 DESC LIMIT 10"
    """
    from tamias.database.connect import Database

    with closing(Database(place.data, place.db, create=False)) as database, closing(database.session()) as it:
        it.transact(_ready_reader)
        if statement is None:
            return _open_psql(place, database)
        with closing(it.give_away()) as connection:
            _print(_read(connection, statement), form or ("json" if place.json else "table"))
    return 0


def _ready_reader(cursor: "Cursor") -> None:
    """Make the role, and let it read what it may not read yet."""
    from psycopg import errors as pg

    from tamias.database.migrate import ADVISORY_LOCK
    from tamias.database.roles import for_administrators, ready_role
    from tamias.database.sql import statements

    try:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])
        ready_role(cursor, ROLE)
        cursor.execute(f"GRANT USAGE ON SCHEMA tamias TO {ROLE}")
        lacking = statements("tamias.features.sql", "sql.sql")["grants"].text
        for (grant,) in cursor.execute(lacking, {"secret": SECRET_TABLES}).fetchall():
            cursor.execute(grant)
    except pg.InsufficientPrivilege as error:
        raise DatabaseError(
            f"'tamias sql' reads as the role {ROLE}, which the database's user may not make; "
            f"let an administrator of the server run: {for_administrators(cursor, [ROLE])}"
        ) from error


def _read(connection: "Connection", statement: str) -> Iterator[tuple[Any, ...]]:
    """Yield the names of the columns, then the rows. Raises `UsageError` for what the server refuses."""
    import psycopg

    try:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL ROLE {ROLE}")
            cursor.execute("SET TRANSACTION READ ONLY")
            named = False
            for row in cursor.stream(statement):  # it takes one statement only
                if not named:
                    yield tuple(each.name for each in cursor.description or ())
                    named = True
                yield row
    except psycopg.Error as error:
        raise UsageError(f"the database refused: {error.diag.message_primary or error}") from error


def _print(rows: Iterable[tuple[Any, ...]], form: str) -> None:
    """Print rows as they come, after their names."""
    shown = (tuple(each.hex() if isinstance(each, bytes) else each for each in row) for row in rows)
    if (names := next(shown, None)) is None:
        return
    if form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows(map(csv_cell, row) for row in chain([names], shown))
    elif form == "json":
        for row in shown:
            say_json(dict(zip(names, row, strict=True)))
    else:
        print_table(["" if cell is None else str(cell) for cell in line] for line in chain([names], shown))


def _open_psql(place: CommonOptions, database: "Database") -> int:
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import Conninfo

    from tamias.database.nodes import read_url

    if (program := shutil.which("psql")) is None:
        raise TamiasError(
            "psql is not installed (Debian: apt install postgresql-client); "
            f"{place.command('sql', 'SELECT …')} needs none"
        )
    if database.embedded:
        known = conninfo_to_dict(database.embedded.address())
        # A descriptor of ours: psql finds it as one of this process.
        known["host"] = str(known["host"]).replace("/proc/self/", f"/proc/{os.getpid()}/")
    else:
        known = read_url(place.db)
    known["options"] = f"{known.get('options') or ''} {_SETTINGS}"
    # Not as arguments, which others can see.
    names = {each.keyword.decode(): each.envvar for each in Conninfo.get_defaults()}
    given = {name.decode(): str(known[key]) for key, name in names.items() if name and known.get(key)}
    before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for psql
    try:
        return subprocess.run([program], env={**os.environ, **given}, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)
