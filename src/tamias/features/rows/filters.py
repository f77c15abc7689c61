"""Filters of rows: a small language of comparisons, turned into SQL in which every text is a parameter.

Nothing but columns, literals and the operators below can be written: no function, no other table.

    filter     = term { OR term }            term       = factor { AND factor }
    factor     = [NOT] ( comparison | "(" filter ")" )
    comparison = column ( = | != | <> | < | <= | > | >= ) literal
               | column [NOT] ( LIKE | ILIKE ) 'text' | column [NOT] IN "(" literal { "," literal } ")"
               | column IS [NOT] NULL

A column is a word, or anything in double quotes; a literal is a number, a 'text', TRUE or FALSE.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from tamias.model.errors import UsageError

LONGEST: Final = 2000
_DEEPEST: Final = 30
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>\"(?:[^\"]|\"\")*\")"
    r"|(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.])"
    r"|(?P<sign><=|>=|<>|!=|[=<>(),])|(?P<word>[^\W\d]\w*))\s*"
)
_SIGNS: Final = frozenset({"=", "!=", "<>", "<", "<=", ">", ">="})
_COMPARED_AS = re.compile(
    r"DATE|TIME|TIMESTAMP(?: WITH TIME ZONE)?|BOOLEAN|(?P<number>.*INT.*|DECIMAL.*|DOUBLE|FLOAT)"
)


def quoted(column: str) -> str:
    """Return the name of a column as SQL writes it."""
    return '"' + column.replace('"', '""') + '"'


def compile_filter(text: str, columns: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return SQL for a filter, with its parameters, of a table with columns of these types.

    >>> compile_filter("a >= 2.5 AND NOT b ILIKE '%a''b%'", {"a": "DOUBLE", "b": "VARCHAR"})
    ('("a" >= CAST(? AS DOUBLE) AND NOT ("b"::VARCHAR ILIKE CAST(? AS VARCHAR)))', ['2.5', "%a'b%"])

    Raises `UsageError` for anything else than the filter that the module describes.
    """
    if len(text) > LONGEST:
        raise UsageError(f"'where' may have {LONGEST} characters at most")
    parser = _Parser(text, columns)
    return parser.parse(), parser.values


class _Parser:
    """Reads a filter from left to right."""

    def __init__(self, text: str, columns: Mapping[str, str]) -> None:
        self._columns = columns
        self.values: list[str] = []
        self._tokens: list[tuple[str, str]] = []
        self._place = 0
        self._depth = 0
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise UsageError(f"'where' cannot be read at {text[at : at + 20]!r}; write COLUMN = 'text'")
            self._tokens.append((found.lastgroup or "", found[found.lastgroup or 0]))
            at = found.end()

    def parse(self) -> str:
        """Return the SQL of the whole filter."""
        found = self._filter()
        if self._place < len(self._tokens):
            raise self._wrong("AND or OR")
        return found

    def _filter(self) -> str:
        return self._chain("OR", lambda: self._chain("AND", self._factor))

    def _chain(self, word: str, part: Callable[[], str]) -> str:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else f"({f' {word} '.join(parts)})"

    def _factor(self) -> str:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UsageError(f"'where' is nested deeper than {_DEEPEST}")
        if self._take("NOT"):
            found = f"NOT ({self._factor()})"
        elif self._take("("):
            found = self._filter()
            self._expect(")")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> str:
        kind, text = self._next("a column")
        name = text[1:-1].replace('""', '"') if kind == "name" else text
        if kind not in ("name", "word") or name not in self._columns:
            known = ", ".join(list(self._columns)[:20])
            raise UsageError(f"'where' names {name[:100]!r}, which is no column; there are: {known}")
        column = quoted(name)
        if self._take("IS"):
            no = "NOT " if self._take("NOT") else ""
            self._expect("NULL")
            return f"{column} IS {no}NULL"
        no = "NOT " if self._take("NOT") else ""
        for word in ("LIKE", "ILIKE"):
            if self._take(word):
                return f"{column}::VARCHAR {no}{word} {self._literal('VARCHAR', ('text',))}"
        compared = _COMPARED_AS.fullmatch(self._columns[name])
        as_text = column if compared else f"{column}::VARCHAR"
        if self._take("IN"):
            self._expect("(")
            values = [self._literal(self._columns[name])]
            while self._take(","):
                values.append(self._literal(self._columns[name]))
            self._expect(")")
            return f"{as_text} {no}IN ({', '.join(values)})"
        kind, sign = self._next("a comparison")
        if sign not in _SIGNS or no:
            self._place -= 1
            raise self._wrong("=, !=, <, <=, >, >=, LIKE, ILIKE, IN or IS")
        return f"{as_text} {sign} {self._literal(self._columns[name])}"

    def _literal(self, datatype: str, kinds: tuple[str, ...] = ("text", "number", "word")) -> str:
        """A parameter that holds the next literal, as the type that the column is compared as."""
        kind, text = self._next("a literal")
        if kind not in kinds or (kind == "word" and text.upper() not in ("TRUE", "FALSE")):
            self._place -= 1
            raise self._wrong("a number, a 'text', TRUE or FALSE")
        value = text[1:-1].replace("''", "'") if kind == "text" else text
        compared = _COMPARED_AS.fullmatch(datatype)
        if compared and compared["number"]:
            whole = datatype.endswith("INT") and value.lstrip("+-").isdecimal()
            datatype = "HUGEINT" if whole else "DOUBLE"
        self.values.append(value)
        return f"CAST(? AS {datatype if compared else 'VARCHAR'})"

    def _take(self, wanted: str) -> bool:
        """Go on behind a word or a sign, if it is next."""
        kind, text = self._tokens[self._place] if self._place < len(self._tokens) else ("", "")
        found = kind in ("word", "sign") and text.upper() == wanted
        self._place += found
        return found

    def _next(self, wanted: str) -> tuple[str, str]:
        if self._place == len(self._tokens):
            raise self._wrong(wanted)
        self._place += 1
        return self._tokens[self._place - 1]

    def _expect(self, wanted: str) -> None:
        if not self._take(wanted):
            raise self._wrong(wanted)

    def _wrong(self, wanted: str) -> UsageError:
        rest = " ".join(text for _, text in self._tokens[self._place :])[:40]
        return UsageError(
            f"'where' has {rest!r} where {wanted} is expected" if rest else f"'where' ends before {wanted}"
        )
