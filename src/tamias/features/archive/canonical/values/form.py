"""The form in which a column writes values of a datatype, and what reads it: SQL, or Python."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

NULLS = ("n/a", "#n/a", "null", "\\n", "nil", "(null)")
"""Never a value, whatever the column is; besides what is empty. In lower case."""

TYPED_NULLS = (
    *NULLS,
    "na",
    "nan",
    "none",
    "-",
    "--",
    "---",
    ".",
    "..",
    "...",
    "k.a.",
    "k. a.",
    "nd",
    "n.d.",
    "?",
    "x",
    "\u2013",
    "*",
)
"""Nor these, among numbers, times and truth values."""


class Uncertain(Exception):
    """DuckDB may read this otherwise than plain Python would: it has to be asked."""


class ColumnForm(msgspec.Struct, frozen=True, kw_only=True):
    """The notation of the values of one column."""

    datatype: str
    format: str | None = None
    sql: str = "{v}"
    """What makes a value of it; NULL where it is none. `{v}` stands for the trimmed text."""
    shown: str = "{x}"
    """What makes text of such a value, `{x}`, in the form of XML Schema."""
    read: Callable[[Sequence[str]], list[Any]] | None = None
    """The same as `sql` in Python, of many texts: the values, whose `str` is what `shown` gives.

    Raises `Uncertain` for a text that it cannot read exactly as DuckDB does; there is none for some forms.
    """
    unit: str | None = None
    """`%` or the sign of a currency that stands with the numbers."""
    odd: bool = False
    """The same texts could be of another form."""

    @property
    def is_number(self) -> bool:
        """True if a mean makes sense."""
        return self.datatype in ("integer", "decimal", "double")


def each_read(read: Callable[[str], object]) -> Callable[[Sequence[str]], list[Any]]:
    """Reads one text after the other; None where it is no value."""
    return lambda texts: [value for text in texts if (value := read(text)) is not None]


TEXT = ColumnForm(datatype="string", read=list)
