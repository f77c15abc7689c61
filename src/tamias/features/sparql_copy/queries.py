"""The queries of a copy. No text from outside enters a query unescaped."""

from collections.abc import Iterable, Sequence

import msgspec

SPACE = 1 << 32
"""Hashes are numbers below this: the first eight digits of an MD5."""

ANY = "SELECT ?s ?p ?o WHERE { ?s ?p ?o } LIMIT 1"
COUNT_DEFAULT = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }"
_NOT_IN_A_GRAPH = "FILTER NOT EXISTS { GRAPH ?any { ?s ?p ?o } }"
COUNT_OWN = f"SELECT (COUNT(*) AS ?n) WHERE {{ ?s ?p ?o {_NOT_IN_A_GRAPH} }}"
"""What only the default graph has. Servers that look into one graph after another take very long for this."""
COUNT_UNNAMED = "SELECT (COUNT(*) AS ?n) FROM <http://www.openrdf.org/schema/sesame#nil> WHERE { ?s ?p ?o }"
"""The same in RDF4J and its kin, where the default graph is the union of all graphs and an unnamed one."""
NAMED_ONLY = "SELECT ?s WHERE { GRAPH ?g { ?s ?p ?o } FILTER NOT EXISTS { ?s ?p ?o } } LIMIT 1"
"""Finds something if the default graph lacks what a named graph has."""
NAMED_ONLY_OF_SOME = (
    "SELECT ?s WHERE { { SELECT ?s ?p ?o WHERE { GRAPH ?g { ?s ?p ?o } } LIMIT 1000 } "
    "FILTER NOT EXISTS { ?s ?p ?o } } LIMIT 1"
)
_BLANK_HERE = "{ ?b ?p ?o FILTER(isBlank(?b)) } UNION { ?s ?p ?b FILTER(isBlank(?b)) }"
_BLANK_THERE = "GRAPH ?h { { ?b ?q ?x } UNION { ?y ?q ?b } }"
SHARED_BLANKS = (
    f"SELECT ?b WHERE {{ GRAPH ?g {{ {_BLANK_HERE} }} {_BLANK_THERE} FILTER(?g != ?h) }} LIMIT 1",
    f"SELECT ?b WHERE {{ {_BLANK_HERE} {_BLANK_THERE} }} LIMIT 1",
)
"""Blank nodes of several named graphs; those of the default graph and of a named one."""
BLANK = "isBlank(?s) || isBlank(?o)"
TRIPLE_TERM = "isTRIPLE(?o)"
"""SPARQL 1.2: a triple that is a term may have blank nodes in it. Other servers refuse the query."""
_SAID = (
    'CONCAT(COALESCE(STR(?s), ""), " ", STR(?p), " ", COALESCE(STR(?o), ""), " ", '
    'COALESCE(LANG(?o), ""), " ", COALESCE(STR(DATATYPE(?o)), ""))'
)
"""All that any server can say of a statement in one string; of blank nodes that is nothing."""

_NAME = 'COALESCE(STR(?g), "")'


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """Hashes from `low` on. An even and repeatable partition of anything, in whatever order rows come."""

    low: int = 0
    width: int = SPACE

    @property
    def is_all(self) -> bool:
        """Return whether every hash is in the span."""
        return self.width >= SPACE

    @property
    def is_last(self) -> bool:
        """Return whether the span is the last one."""
        return self.low + self.width >= SPACE

    def resized(self, factor: float) -> "Span":
        """Return a span from the same hash on, wider or narrower."""
        return Span(self.low, max(1, min(int(self.width * factor), SPACE - self.low)))

    def next(self) -> "Span":
        """Return the next span, as wide."""
        low = self.low + self.width
        return Span(low, min(self.width, SPACE - low))


def quoted(text: str) -> str:
    r"""A string literal. A processor looks for `\u0041` before anything else, so none may arise.

    >>> print(quoted('a "b" C:\\users'))
    "a \"b\" C:\\\u0075sers"
    """
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return '"' + text.replace("\\\\u", "\\\\\\u0075").replace("\\\\U", "\\\\\\u0055") + '"'


def count_own_of(some: int) -> str:
    """The same as `COUNT_OWN` for some statements, which shows what it costs."""
    return (
        f"SELECT (COUNT(*) AS ?n) WHERE {{ {{ SELECT ?s ?p ?o WHERE {{ ?s ?p ?o }} LIMIT {some} }} "
        f"{_NOT_IN_A_GRAPH} }}"
    )


def statements(graph: str | None, *, content: str = "", own: bool = False, span: Span | None = None) -> str:
    """The pattern of the statements of a graph (None: the default graph).

    `content` is a condition; `own` leaves out what a named graph has as well; a `span` takes those with
    hashes in it.
    """
    found = f"GRAPH <{graph}> {{ ?s ?p ?o }}" if graph is not None else "?s ?p ?o ."
    hashed = "" if span is None or span.is_all else f" {_hashed(_SAID, span)}"
    return f"{found}{f' {_NOT_IN_A_GRAPH}' if own else ''}{content and f' FILTER({content})'}{hashed}"


def construct(where: str, limit: int, offset: int = 0, *, order: bool = False) -> str:
    """Return a query for a window of the statements of a pattern."""
    return f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {where} }}{_window(limit, offset, order)}"


def select(where: str, limit: int, offset: int = 0, *, order: bool = False) -> str:
    """Return the same query for rows."""
    return f"SELECT ?s ?p ?o WHERE {{ {where} }}{_window(limit, offset, order)}"


def construct_graphs(names: Sequence[str], limit: int) -> str:
    """Return a query for all statements of graphs; predicates begin with the graph's number (`urn:N:`)."""
    numbered = " ".join(f'(<{name}> "urn:{number}:")' for number, name in enumerate(names))
    where = f"VALUES (?g ?n) {{ {numbered} }} GRAPH ?g {{ ?s ?p ?o }} BIND(IRI(CONCAT(?n, STR(?p))) AS ?q)"
    return f"CONSTRUCT {{ ?s ?q ?o }} WHERE {{ {where} }} LIMIT {limit}"


def select_graphs(names: Iterable[str], limit: int) -> str:
    """The same as rows, with the graph's name as `?g`."""
    values = " ".join(f"<{name}>" for name in names)
    return f"SELECT ?g ?s ?p ?o WHERE {{ VALUES ?g {{ {values} }} GRAPH ?g {{ ?s ?p ?o }} }} LIMIT {limit}"


def select_blank_graphs(limit: int) -> str:
    """Statements of graphs whose names are blank nodes."""
    return (
        "SELECT ?g ?s ?p ?o WHERE { GRAPH ?g { ?s ?p ?o } FILTER(isBlank(?g)) }"
        f"{_window(limit, 0, order=False)}"
    )


def graphs(span: Span, limit: int, offset: int = 0, *, counted: bool = True) -> str:
    """The names of graphs, with the number of their statements as `?n` where `counted`."""
    hashed = "" if span.is_all else f" {_hashed(_NAME, span)}"
    where = f"WHERE {{ GRAPH ?g {{ ?s ?p ?o }}{hashed} }}"
    if not counted:
        return f"SELECT DISTINCT ?g {where}{_window(limit, offset, order=False)}"
    return f"SELECT ?g (COUNT(*) AS ?n) {where} GROUP BY ?g{_window(limit, offset, order=False)}"


def some(conditions: str, fixed: str = "", *, named: bool = False) -> str:
    """The pattern of statements of the default graph or of named graphs, with terms given by a VALUES clause.

    Of both together it would be a UNION, which some servers compute whole before the first row.
    """
    found = "GRAPH ?g { ?s ?p ?o }" if named else "?s ?p ?o"
    return f"{fixed} {found} FILTER({conditions})"


def _hashed(text: str, span: Span) -> str:
    upper = "" if span.is_last else f' && ?h < "{span.low + span.width:08x}"'
    return f'BIND(MD5({text}) AS ?h) FILTER(?h >= "{span.low:08x}"{upper})'


def _window(limit: int, offset: int, order: bool) -> str:
    sorting = " ORDER BY ?s ?p ?o" if order else ""
    return f"{sorting} LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
