"""An upgrade that is killed at any of its steps leaves the data as it was, and the next one completes it."""

from contextlib import closing
from itertools import count

from tamias.database.connect import Database
from tamias.database.migrate import FIRST, migrations

from .test_upgrades import DIGESTS, ROWS, TABLES, table_rows

HOURS = "attempts"
"""The table to which the archive adds the hours that pass."""
VERSION = "SELECT schema_version FROM meta"


def look(data, tables, **words):
    """The version, the rows of these tables, and digests of the schema of a data directory."""
    with closing(Database(data, **words)) as database, closing(database.session()) as session:
        return session.transact(
            lambda cursor: (
                cursor.execute(VERSION).fetchone(),
                table_rows(cursor, tables),
                dict(cursor.execute(DIGESTS).fetchall()),
            )
        )


def test_data_opens_after_an_upgrade_that_was_killed_at_each_of_its_steps(tamias_at):
    tamias = tamias_at("data")
    with closing(Database(tamias.data, upto=FIRST)) as database, closing(database.session()) as session:
        session.transact(lambda cursor: [cursor.execute(each) for each in ROWS])
        tables = [each for each in session.fetch_all(TABLES.encode()) if each[0] != HOURS]
    before = look(tamias.data, tables, upto=FIRST)
    for step in count(1):
        tamias.env["TAMIAS_FAULT"] = f"schema-step:{step}"
        done = tamias.run("stats")
        if done.returncode == 0:
            break
        assert "killed at schema-step" in done.stderr
        assert look(tamias.data, tables, upto=FIRST) == before
    assert step > len(migrations())
    (version,), rows, digests = look(tamias.data, tables)
    new = tamias_at("new")
    assert version == migrations()[-1].number
    # What searches find is written anew: words have places and weights since version 83.
    assert len(rows.pop("findable")) == len(before[1].pop("findable"))
    assert before[1] == rows
    assert digests == look(new.data, tables, create=True)[2]
    assert tamias.run("check").returncode == 0
