"""The queries themselves. Each is right under any cap and in any order of rows: none needs ORDER BY, but one.

No text from outside enters a query unescaped.
"""

from collections.abc import Iterable

from tamias.doors.sparql.scope import Scope, Span

ANY = "SELECT ?s ?p ?o WHERE { ?s ?p ?o } LIMIT 1"
ANY_CONSTRUCTED = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT 1"
ANY_GRAPH = "SELECT ?g WHERE { GRAPH ?g { ?s ?p ?o } } LIMIT 1"
NAMED_ONLY = "SELECT ?s WHERE { GRAPH ?g { ?s ?p ?o } FILTER NOT EXISTS { ?s ?p ?o } } LIMIT 1"
"""Finds something if the default graph lacks what a named graph has."""
DEFAULT_ONLY = "SELECT ?s WHERE { ?s ?p ?o FILTER NOT EXISTS { GRAPH ?g { ?s ?p ?o } } } LIMIT 1"
"""Finds something if the default graph has what no named graph has."""
NAMED_ONLY_OF_SOME = (
    "SELECT ?s WHERE { { SELECT ?s ?p ?o WHERE { GRAPH ?g { ?s ?p ?o } } LIMIT 1000 } "
    "FILTER NOT EXISTS { ?s ?p ?o } } LIMIT 1"
)
DEFAULT_ONLY_OF_SOME = (
    "SELECT ?s WHERE { { SELECT ?s ?p ?o WHERE { ?s ?p ?o } LIMIT 1000 } "
    "FILTER NOT EXISTS { GRAPH ?g { ?s ?p ?o } } } LIMIT 1"
)
_BLANKS = (
    "SELECT ?g ?s ?p ?o WHERE {{ {{ ?s ?p ?o }} UNION {{ GRAPH ?g {{ ?s ?p ?o }} }} "
    "FILTER(isBlank(?s) || isBlank(?o)) }} LIMIT {limit}"
)


def quoted(text: str) -> str:
    r"""A string literal. A processor looks for `\u0041` before anything else, so none may arise.

    >>> print(quoted('a "b" C:\\users'))
    "a \"b\" C:\\\u0075sers"
    """
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return '"' + text.replace("\\\\u", "\\\\\\u0075").replace("\\\\U", "\\\\\\u0055") + '"'


def count(scope: Scope) -> str:
    """How many statements there are, as `?n`."""
    return f"SELECT (COUNT(*) AS ?n) WHERE {{ {_statements(scope)} }}"


def whole(scope: Scope, limit: int, offset: int = 0) -> str:
    """All statements."""
    return f"{_select(scope)} WHERE {{ {_statements(scope)} }}{_window(limit, offset)}"


def page(scope: Scope, key: str, keys: Iterable[str], limit: int, offset: int = 0) -> str:
    """All statements whose `key` (a variable) is one of these IRIs."""
    values = " ".join(f"<{each}>" for each in keys)
    where = f"VALUES ?{key} {{ {values} }} {_statements(scope)}"
    return f"{_select(scope)} WHERE {{ {where} }}{_window(limit, offset)}"


def constructed_page(scope: Scope, key: str, keys: Iterable[str], limit: int) -> str:
    """The same as triples."""
    values = " ".join(f"<{each}>" for each in keys)
    where = f"VALUES ?{key} {{ {values} }} {_statements(scope)}"
    return f"CONSTRUCT {{ {_triple(scope)} }} WHERE {{ {where} }}{_window(limit, 0)}"


def listing(
    scope: Scope,
    key: str,
    span: Span,
    limit: int,
    offset: int = 0,
    *,
    counted: bool = True,
    through: str | None = None,
    without: Iterable[str] = (),
) -> str:
    """The IRIs of one variable, with the number of their statements as `?n` where `counted`.

    `through` lists those subjects only that have this predicate, which costs the server far less;
    `without`, those that have none of these.
    """
    where = _within(scope, f"?s <{through}> ?x") if through else _statements(scope)
    conditions = f"{_filter(*_bounds(key, span), f'isIRI(?{key})')} {_lacking(scope, without)}"
    chosen = f"SELECT DISTINCT ?{key} WHERE {{ {where} {conditions} }}"
    if not counted:
        return chosen + _window(limit, offset)
    return (
        f"SELECT ?{key} (COUNT(*) AS ?n) WHERE {{ {{ {chosen} LIMIT {limit} }} {_statements(scope)} }} "
        f"GROUP BY ?{key}{_window(limit, offset)}"
    )


def rows(scope: Scope, span: Span, limit: int, offset: int = 0) -> str:
    """All statements whose object's `STR` is in the span."""
    filters = _filter(*_bounds("o", span), "isIRI(?o) || isLiteral(?o)")
    return f"{_select(scope)} WHERE {{ {_statements(scope)} {filters} }}{_window(limit, offset)}"


def ordered(scope: Scope, limit: int, offset: int, *, order: bool = True) -> str:
    """A page of the statements by number, for what has no key to page by."""
    variables = " ".join(f"?{name}" for name in scope.free)
    sorting = f" ORDER BY {variables}" if order else ""
    return f"{_select(scope)} WHERE {{ {_statements(scope)} }}{sorting}{_window(limit, offset)}"


def constructed(scope: Scope, limit: int, offset: int, *, order: bool = True) -> str:
    """The same for a server that answers no SELECT."""
    sorting = " ORDER BY ?s ?p ?o" if order else ""
    return f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {_statements(scope)} }}{sorting}{_window(limit, offset)}"


def with_blanks(scope: Scope, limit: int, offset: int = 0) -> str:
    """All statements with a blank node in them."""
    return (
        f"{_select(scope)} WHERE {{ {_statements(scope)} {_filter('isBlank(?s) || isBlank(?o)')} }}"
        f"{_window(limit, offset)}"
    )


def backbone(scope: Scope, without: Iterable[str]) -> str:
    """The predicate `?p` that the most subjects have, of those that have none of these; how many is `?n`."""
    where = f"{_statements(scope)} {_filter('isIRI(?s)')} {_lacking(scope, without)}"
    return f"SELECT ?p (COUNT(DISTINCT ?s) AS ?n) WHERE {{ {where} }} GROUP BY ?p ORDER BY DESC(?n) LIMIT 1"


def some_blanks(limit: int) -> str:
    """Some statements with blank nodes, from anywhere; those of the default graph without `?g`."""
    return _BLANKS.format(limit=limit)


def _select(scope: Scope) -> str:
    return "SELECT " + " ".join(f"?{name}" for name in scope.free)


def _statements(scope: Scope) -> str:
    triple = _triple(scope)
    apart = f"FILTER NOT EXISTS {{ GRAPH ?any {{ {triple} }} }}" if scope.apart else ""
    return " ".join(filter(None, (_within(scope, triple), _filter(*_conditions(scope)), apart)))


def _triple(scope: Scope) -> str:
    subject = f"<{scope.subject}>" if scope.subject else "?s"
    predicate = f"<{scope.predicate}>" if scope.predicate else "?p"
    return f"{subject} {predicate} ?o"


def _within(scope: Scope, triple: str) -> str:
    if not scope.named:
        return f"{triple} ."
    return f"GRAPH {f'<{scope.graph}>' if scope.graph else '?g'} {{ {triple} }}"


def _lacking(scope: Scope, predicates: Iterable[str]) -> str:
    return " ".join(
        f"FILTER NOT EXISTS {{ {_within(scope, f'?s <{each}> ?w{number}')} }}"
        for number, each in enumerate(predicates)
    )


def _conditions(scope: Scope) -> list[str]:
    said = [
        (scope.nameless_graphs, "!isIRI(?g)"),
        (scope.nameless, "!isIRI(?s)"),
        (scope.opaque, "!(isIRI(?o) || isLiteral(?o))"),
        (scope.blankless and not scope.subject, "!isBlank(?s)"),
        (scope.blankless, "!isBlank(?o)"),
    ]
    conditions = [condition for holds, condition in said if holds]
    if scope.same is not None:
        conditions += [f"STR(?o) = {quoted(scope.same)}", "isIRI(?o) || isLiteral(?o)"]
    return conditions


def _bounds(key: str, span: Span) -> list[str]:
    bounds = []
    if span.after is not None:
        bounds.append(f"STR(?{key}) > {quoted(span.after)}")
    if span.upto is not None:
        bounds.append(f"STR(?{key}) {'<' if span.below else '<='} {quoted(span.upto)}")
    return bounds


def _filter(*conditions: str) -> str:
    """One FILTER for each: a server that reads them in order is faster so, by half."""
    return " ".join(f"FILTER({condition})" for condition in conditions)


def _window(limit: int, offset: int) -> str:
    return f" LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
