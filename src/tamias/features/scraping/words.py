"""A rule file under examination: takes its words for what they must be, or tells file and line; prefixes."""

import difflib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn
from typing import Literal as OneOf

import msgspec
from pyoxigraph import Literal, NamedNode

from tamias.model.errors import ConfigError

Term = NamedNode | Literal


class Selector(msgspec.Struct, frozen=True):
    """`h1`, `a@href`, `.` (the element at hand) or `@href` (its attribute)."""

    css: str
    """Empty for the element at hand."""
    attribute: str | None = None


class ValueRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for values: where they come from and how they are changed."""

    place: str
    """File and line, for problems."""
    selector: Selector | None = None
    constant: Term | None = None
    """Instead of a selector."""
    template: str | None = None
    """A constant with variables."""
    is_iri: bool = False
    prefix: str = ""
    """A template, put before the text."""
    datatype: NamedNode | None = None
    language: str | None = None
    after: str = ""
    before: str = ""
    split: str = ""
    number: OneOf["", ".", ","] = ""
    """The decimal sign, where the first number in the text is wanted."""
    date: str = ""
    """The form of a date, as `strptime` has it."""
    first: bool = False
    as_list: bool = False


class SubjectRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for a subject: the page, each match of a selector, or something nested."""

    place: str
    each: str | None = None
    subject: str | ValueRule | None = None
    """A template or where to find it; None for a blank node."""
    types: tuple[NamedNode, ...] = ()
    properties: tuple[tuple[NamedNode, "ValueRule | SubjectRule"], ...] = ()


class Pagination(msgspec.Struct, frozen=True, kw_only=True):
    """A list whose pages are numbered in the query: `?page=2`."""

    parameter: str
    last: Selector | int
    """The number of the last page, or where it stands."""
    start: int = 2


class PageRule(msgspec.Struct, frozen=True, kw_only=True):
    """A table `[[page]]`."""

    match: tuple[str, ...]
    unless: tuple[str, ...]
    subject: SubjectRule
    follow: tuple[Selector, ...]
    follow_only: bool
    paginate: Pagination | None
    counts: bool
    """Whether a selector counts siblings, which costs the square of their number."""


class PortalRules(msgspec.Struct, frozen=True, kw_only=True):
    """A rule file."""

    hosts: tuple[str, ...]
    """`data.example.org`, or `*.example.org` for that domain and all below it."""
    pages: tuple[PageRule, ...]


KeyPath = tuple[str | int, ...]
"""Keys and indices from the top: ("page", 0, "dct:title")."""

_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"""|' + r"'''.*?'''" + r'|"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'"
    r"|#[^\n]*|\n|[ \t\r]+|[\[\]{}=,.]|[^\s\[\]{}=,.\"'#]+|.",
    re.DOTALL,
)


class KeyLines:
    """Finds the line of a key in a text that is good TOML."""

    def __init__(self, text: str) -> None:
        self._lines: dict[KeyPath, int] = {}
        self._tables: dict[KeyPath, int] = {}
        """Arrays of tables, and the index of their last table."""
        self._within: KeyPath = ()
        for line, statement in _statements(text):
            self._take(line, statement)

    def line(self, path: KeyPath) -> int:
        """The line of the key, or of the nearest table around it."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def _take(self, line: int, statement: list[str]) -> None:
        if statement[0] == "[":
            is_array = statement[1] == "["
            self._within = self._header(_keys(statement), is_array=is_array)
            self._lines.setdefault(self._within, line)
        else:
            keys = _keys(statement[: statement.index("=")])
            self._lines.setdefault((*self._within, *keys), line)

    def _header(self, keys: list[str], *, is_array: bool) -> KeyPath:
        path: KeyPath = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            if is_array and position == len(keys) - 1:
                self._tables[path] = self._tables.get(path, -1) + 1
            if path in self._tables:
                path = (*path, self._tables[path])
        return path


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Headers and assignments, each with its line and its pieces."""
    line = start = 1
    depth = 0
    statement: list[str] = []
    for found in _PIECE.finditer(text + "\n"):
        piece = found[0]
        if piece == "\n" and statement and depth == 0:
            yield start, statement
            statement = []
        elif not piece.isspace() and not piece.startswith("#"):
            start = start if statement else line
            statement.append(piece)
            depth += (piece in "[{") - (piece in "]}")
        line += piece.count("\n")


def _keys(statement: list[str]) -> list[str]:
    return [_unquoted(piece) for piece in statement if piece not in "[]."]


def _unquoted(piece: str) -> str:
    if piece[0] == "'":
        return piece[1:-1]
    return piece[1:-1].replace('\\"', '"').replace("\\\\", "\\") if piece[0] == '"' else piece


PREFIXES: Final = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "https://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
"""Known without being declared; a file may give them another meaning."""

VARIABLES: Final = frozenset({"page", "host", "last", "parent", "n"})

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_WHOLE = ("http://", "https://", "urn:", "mailto:")


def expanded(name: str, prefixes: dict[str, str]) -> str:
    """`dct:title` or a whole IRI as an IRI. Raises `ValueError` that names the prefix nobody declared.

    >>> expanded("dct:title", PREFIXES)
    'http://purl.org/dc/terms/title'
    """
    if name.startswith(_WHOLE):
        return name
    prefix, colon, local = name.partition(":")
    if not colon:
        raise ValueError(f"{name!r} is neither an IRI nor a prefixed name such as dct:title")
    if prefix not in prefixes:
        known = ", ".join(sorted(prefixes))
        raise ValueError(f"the prefix {prefix!r} is not declared; add it to [prefixes] (known: {known})")
    return prefixes[prefix] + local


def check_template(text: str) -> None:
    """Raises `ValueError` for a variable that there is not."""
    for variable in _VARIABLE.findall(text):
        if variable not in VARIABLES:
            known = ", ".join(f"{{{each}}}" for each in sorted(VARIABLES))
            raise ValueError(f"there is no variable {{{variable}}}; there are {known}")


def filled(template: str, values: dict[str, str]) -> str:
    """The template with its variables replaced.

    >>> filled("{page}#file-{n}", {"page": "http://example.org/a", "n": "3"})
    'http://example.org/a#file-3'
    """
    return _VARIABLE.sub(lambda found: values.get(found[1], ""), template) if "{" in template else template


class RuleFile:
    """The words of one file. Every method raises `ConfigError` for what does not fit."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = KeyLines(text)
        self.prefixes = dict(PREFIXES)

    def template(self, path: KeyPath, value: Any) -> str:
        """A text whose variables are known."""
        if not isinstance(value, str):
            self.fail(path, f"expected a text, found {value!r}")
        try:
            check_template(value)
        except ValueError as error:
            self.fail(path, str(error))
        return value

    def language(self, path: KeyPath, value: Any) -> str:
        """A language tag."""
        try:
            return Literal("", language=self.text(path, value, "lang")).language or ""
        except ValueError:
            self.fail(path, f"{value!r} is not a language; write en or de-AT")

    def named(self, path: KeyPath, name: Any) -> NamedNode:
        """A prefixed name or a whole IRI, as a node."""
        try:
            return self.iri(path, expanded(self.text(path, name, "a name"), self.prefixes))
        except ValueError as error:
            self.fail(path, str(error))

    def iri(self, path: KeyPath, value: Any) -> NamedNode:
        """A whole IRI, as a node."""
        try:
            return NamedNode(self.text(path, value, "an IRI"))
        except ValueError as error:
            self.fail(path, f"{value!r} is not an IRI: {error}")

    def text(self, path: KeyPath, value: Any, what: str) -> str:
        """A text that is not empty."""
        if not isinstance(value, str) or not value:
            self.fail(path, f"{what} must be a text" if value is not None else f"{what} is missing")
        return value

    def texts(self, path: KeyPath, value: Any, what: str) -> tuple[str, ...]:
        """Return a text, or a list of texts, as a tuple."""
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(each, str) and each for each in values):
            self.fail(path, f"{path[-1]} must be a text or a list of texts: {what}")
        return tuple(values)

    def flag(self, path: KeyPath, value: Any) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            self.fail(path, f"{path[-1]} is true or false, not {value!r}")
        return value

    def table(self, path: KeyPath, value: Any) -> dict[str, Any]:
        """A table."""
        if not isinstance(value, dict):
            self.fail(path, f"{path[-1]} must be a table")
        return value

    def check_keys(
        self, path: KeyPath, table: Iterable[str], known: tuple[str, ...], *, properties: bool = True
    ) -> None:
        """Report keys that are neither known nor, where these may stand, properties."""
        for key in table:
            if key in known or (properties and ":" in key):
                continue
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            more = ", and properties such as dct:title" if properties and not near else ""
            self.fail((*path, key), f"there is no key {key!r} here; {hint}{more}")

    def place(self, path: KeyPath) -> str:
        """File and line of a key, in short."""
        return f"{self._path.name}:{self._lines.line(path)}"

    def fail(self, path: KeyPath, complaint: str) -> NoReturn:
        """Tells what is wrong, with file and line."""
        raise ConfigError(f"{self._path}:{self._lines.line(path)}: {complaint}")
