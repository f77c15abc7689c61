"""Columns arrive in the database as they were written."""

import subprocess
import sys
from contextlib import closing
from uuid import UUID

import pytest

from tamias.database.columns import Bools, Digests, Floats, Ints, Longs, Shorts, Texts, Uuids

MANY = range(-40, 40)
"""More than are packed one by one."""
UUID_TEXT = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (Shorts([0, None, 2**15 - 1, -(2**15)]), "int2"),
        (Shorts(MANY), "int2"),
        (Ints([0, -1, 2**31 - 1, -(2**31)]), "int4"),
        (Ints([*MANY, None]), "int4"),
        (Longs([]), "int8"),
        (Longs([None]), "int8"),
        (Longs([0, -1, 2**63 - 1, -(2**63)]), "int8"),
        (Longs(MANY), "int8"),
        (Floats([0.5, None, -1e300]), "float8"),
        (Floats(float(each) for each in MANY), "float8"),
        (Bools([True, None, False]), "bool"),
        (Bools(each > 0 for each in MANY), "bool"),
        (Texts([]), "text"),
        (Texts([None]), "text"),
        (Texts(["", None, "a", 'ελ\n\t\\{}",NULL', "x" * 100_000]), "text"),
    ],
)
def test_a_column_comes_back_as_it_was_sent(database, column, kind):
    assert sent(database, column, kind) == list(column)


def test_a_column_of_uuids_comes_back(database):
    assert sent(database, Uuids([UUID_TEXT, None]), "uuid") == [UUID(UUID_TEXT), None]


def test_a_column_of_digests_comes_back(database):
    assert sent(database, Digests(["00ff", None, ""]), "bytea") == [b"\0\xff", None, b""]


EARLY = """
import sys
from pathlib import Path
from tamias.database.connect import Database

database = Database(Path(sys.argv[1]))
session = database.session()
session.now()  # it has connected, before anything else was imported
from tamias.database.columns import Digests
print(session.fetch_one(b"SELECT %(column)b::bytea[]", {"column": Digests(["00ff"])}))
session.close()
database.close()
"""


def test_a_connection_that_was_made_before_all_else_writes_columns_as_any_other(place):
    done = subprocess.run([sys.executable, "-c", EARLY, str(place.path)], capture_output=True, check=False)
    assert done.stdout.decode().strip() == r"([b'\x00\xff'],)", done.stderr


def sent(database, column, kind):
    with closing(database.session()) as session:
        statement = f"SELECT %(column)b::{kind}[]".encode()
        return session.transact(lambda cursor: cursor.execute(statement, {"column": column}).fetchone()[0])
