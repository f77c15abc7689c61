"""Columns arrive in the database as they were written."""

from contextlib import closing

import pytest

from tamias.frontier.columns import Ints, Longs, Texts


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (Longs([]), "int8"),
        (Longs([0, -1, 2**63 - 1, -(2**63)]), "int8"),
        (Ints([0, -1, 2**31 - 1, -(2**31)]), "int4"),
        (Texts([]), "text"),
        (Texts([None]), "text"),
        (Texts(["", None, "a", 'ελ\n\t\\{}",NULL', "x" * 100_000]), "text"),
    ],
)
def test_a_column_comes_back_as_it_was_sent(database, column, kind):
    with closing(database.session()) as session:
        statement = f"SELECT %(column)b::{kind}[]".encode()
        back = session.transact(lambda cursor: cursor.execute(statement, {"column": column}).fetchone()[0])
    assert back == list(column)
