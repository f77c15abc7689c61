"""Queries about `urn:tamias:metadata`: the fetches that a query can be about are read from the database.

The graph is not stored. A query is answered from the statements of those fetches: of all, or of those that
fit the conditions of a block without nested groups. A query for which that does not do is refused.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from itertools import islice
from typing import BinaryIO, Final, NamedTuple
from uuid import UUID

import msgspec
from pyoxigraph import RdfFormat, Triple, serialize

from tamias.archive.captures import CaptureFilter, count_buckets, matching_captures
from tamias.database.connect import Database
from tamias.features.catalogue.errors import QueryRefused
from tamias.features.catalogue.query_text import Token, tokenize
from tamias.features.dcat.activity import VALUES, activity_quads, activity_values
from tamias.model import vocabulary as v
from tamias.model.capture import CaptureRecord, Outcome

MOST_FETCHES: Final = 200_000
"""The most fetches that one query may be about."""
_AT_ONCE: Final = 1000
_ALSO_OF_HOPS: Final = ("status", "address")
_GRAPH: Final = ("iri", f"<{v.METADATA_GRAPH.value}>")
_STARTED: Final = f"<{v.PROV_STARTED.value}>"
_OUTCOMES: Final = {f'"{outcome.word}"': outcome for outcome in Outcome}
_TIME: Final = f'"^^<{v.XSD_DATE_TIME.value}>'
_GENERATED_BY: Final = f"<{v.PROV_GENERATED_BY.value}>"
_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_COMPARISONS: Final = ("<", ">", "<=", ">=", "=")
_NOT_TERMS: Final = ("word", "sign")
_NAMES: Final = ("metadata", "tamias:m")
"""Parts of the graph's IRI, of which a query that names it has one."""


def _term(name: str) -> str:
    return f"<{v.term(name).value}>"


_LINKS: Final = {
    _term("hop"),
    _term("renamedGraph"),
    f"<{v.PROV_AGENT.value}>",
    f"<{v.PROV_GENERATED.value}>",
}
"""Predicates that lead from a fetch to what is described beside it."""


class NeededFetches(msgspec.Struct, frozen=True):
    """The fetches, and the statements about them, that a query needs."""

    filters: list[CaptureFilter]
    """Conditions of which a fetch must fit one."""
    predicates: frozenset[str] | None
    """The predicates of needed statements; None: all."""


class _Triple(NamedTuple):
    subject: str
    predicate: str | None
    object: str


class _Block(NamedTuple):
    """A group without nested groups: its triple patterns, and comparisons as variable, operator, literal."""

    triples: list[_Triple]
    comparisons: list[tuple[str, str, str]]


class _NotFlat(Exception):
    """A group with more than triple patterns and filters."""


def find_needed_fetches(query: str, graphs: dict[str, list[str]]) -> NeededFetches | None:
    """Return the fetches that a query needs, or None when it is not about them. Raises `QueryRefused`."""
    tokens = tokenize(query)
    dataset = {("iri", f"<{iri}>") for iris in graphs.values() for iri in iris}
    if _GRAPH not in dataset and not _may_name_graph(tokens):
        return None
    for word in ("BASE", "DESCRIBE"):
        if ("word", word) in tokens:
            raise _refusal(f"{word} cannot be used in it")
    dataset |= _names_after("FROM", [each for each in tokens if each != ("word", "NAMED")])
    if not _is_about_graph(dataset or _names_after("GRAPH", tokens)):
        return None
    contents = [*_find_blocks(tokens, everywhere=bool(dataset))]
    try:
        blocks = [*map(_read_block, contents)]
    except _NotFlat:
        return NeededFetches([CaptureFilter()], None)
    predicates = {each.predicate for block in blocks for each in block.triples}
    known = frozenset(filter(None, predicates))
    return NeededFetches([*map(_filter_of, blocks)], None if None in predicates else known)


def _is_about_graph(named: set[Token]) -> bool:
    if _GRAPH not in named:
        if any(kind == "variable" for kind, _ in named):
            raise _refusal("GRAPH has a variable in place of its name")
        return False
    if named != {_GRAPH}:
        raise _refusal("it names other graphs too")
    return True


def _may_name_graph(tokens: list[Token]) -> bool:
    """Return whether a query names the graph otherwise than to leave it out, or may do so with BASE."""
    if ("word", "BASE") in tokens and any(name in each for _, each in tokens for name in _NAMES):
        return True
    return any(each == _GRAPH and tokens[place - 1][1] != "!=" for place, each in enumerate(tokens))


def _names_after(word: str, tokens: list[Token]) -> set[Token]:
    return {each for place, each in enumerate(tokens) if place and tokens[place - 1] == ("word", word)}


def _find_blocks(tokens: list[Token], *, everywhere: bool) -> Iterator[list[Token]]:
    """Yield the content of each group that is about the graph. Raises `QueryRefused` for other patterns.

    `everywhere` means that all groups are about it. What is in parentheses, in the template of CONSTRUCT and
    in VALUES, and the head and the end of a subquery are no patterns.
    """
    stack = [""]
    begin, before, earlier, is_data = 0, ("", ""), ("", ""), False
    for place, token in enumerate(tokens):
        value, context = token[1], stack[-1]
        if value in ("{", "("):
            if context != "block":
                context, begin = _context(value, before, is_data), place + 1
                if context == "group" and (everywhere or (earlier[1], before) == ("GRAPH", _GRAPH)):
                    context = "block"
            stack.append(context)
        elif value in ("}", ")") and len(stack) > 1:
            if stack.pop() == "block" and "block" not in stack:
                yield tokens[begin:place]
            is_data &= value == ")"
        elif token == ("word", "VALUES"):
            is_data = True
        elif context == "group":
            if token == ("word", "SELECT"):
                stack[-1] = "other"
            elif _is_pattern(token, before):
                raise _refusal("it has patterns outside of GRAPH <urn:tamias:metadata> { … }")
        earlier, before = before, token


def _context(value: str, before: Token, is_data: bool) -> str:
    return "other" if value == "(" or is_data or before[1] == "CONSTRUCT" else "group"


def _is_pattern(token: Token, before: Token) -> bool:
    is_term = token[0] not in _NOT_TERMS or token[1] == "["
    return is_term and before[1] not in ("GRAPH", "VALUES", "FILTER")


def _read_block(tokens: list[Token]) -> _Block:
    """Return the patterns of a group. Raises `_NotFlat`."""
    block, rest = _Block([], []), tokens[::-1]
    subject = predicate = ""
    while rest:
        if rest[-1][1] in ("FILTER", "BIND"):
            _read_filter(rest, block)
        elif rest[-1][1] in (".", ";", ","):
            sign = rest.pop()[1]
            predicate = predicate if sign == "," else ""
            subject = "" if sign == "." else subject
        elif not subject:
            subject = _read_subject(rest)
        elif not predicate:
            kind, predicate = rest.pop()
            if kind == "word" and predicate == "A":
                predicate = _TYPE
            elif kind not in ("iri", "variable"):
                raise _NotFlat
        else:
            named = predicate if predicate.startswith("<") else None
            block.triples.append(_Triple(subject, named, _read_object(rest)))
            following = rest[-1][1] if rest else "."
            if following in ("FILTER", "BIND"):
                subject = predicate = ""
            elif following not in (".", ";", ","):
                raise _NotFlat
    return block


def _read_subject(rest: list[Token]) -> str:
    kind, value = rest.pop()
    if (kind, value) == ("sign", "[") and rest and rest[-1][1] == "]":
        rest.pop()
        return f"[{len(rest)}"
    if kind not in ("iri", "variable", "blank"):
        raise _NotFlat
    return f"?{value[1:]}" if kind == "variable" else value


def _read_object(rest: list[Token]) -> str:
    """Return a term; of a literal with an escape nothing is known."""
    kind, value = rest.pop()
    if kind == "text":
        quote = 3 if value[:3] in ('"""', "'''") else 1
        literal = f'"{value[quote:-quote]}"'
        if rest and rest[-1][0] == "tag":
            literal += rest.pop()[1]
        elif len(rest) > 1 and rest[-1][1] == "^^" and rest[-2][0] == "iri":
            rest.pop()
            literal += f"^^{rest.pop()[1]}"
        return "" if "\\" in value else literal
    if kind in _NOT_TERMS and value not in ("TRUE", "FALSE"):
        raise _NotFlat
    return f"?{value[1:]}" if kind == "variable" else value


def _read_filter(rest: list[Token], block: _Block) -> None:
    """Take a FILTER or BIND; comparisons joined by `&&` in plain parentheses hold for all solutions."""
    is_plain = rest.pop()[1] == "FILTER" and bool(rest) and rest[-1][1] == "("
    depth, inside = 0, list[Token]()
    while rest:
        token = rest.pop()
        if token[1] == "{":
            raise _NotFlat
        depth += {"(": 1, ")": -1}.get(token[1], 0)
        inside.append(token)
        if token[1] == ")" and depth == 0:
            break
    conditions = inside[1:-1]
    if not is_plain or {"||", "!", "IN", "NOT", "("} & {value for _, value in conditions}:
        return
    while conditions:
        end = conditions.index(("sign", "&&")) if ("sign", "&&") in conditions else len(conditions)
        _read_comparison(conditions[:end], block)
        conditions = conditions[end + 1 :]


def _read_comparison(tokens: list[Token], block: _Block) -> None:
    places = [place for place, (_, value) in enumerate(tokens) if value in _COMPARISONS]
    if len(places) != 1:
        return
    left, operator, right = tokens[: places[0]], tokens[places[0]][1], tokens[places[0] + 1 :]
    if right and right[0][0] == "variable":
        left, right, operator = right, left, operator.translate(str.maketrans("<>", "><"))
    if len(left) == 1 and left[0][0] == "variable" and right and right[0][0] == "text":
        rest = right[::-1]
        literal = _read_object(rest)
        if not rest:
            block.comparisons.append((f"?{left[0][1][1:]}", operator, literal))


def _filter_of(block: _Block) -> CaptureFilter:
    """Return the conditions that hold for every fetch that fits a block."""
    subject = _find_fetch(block.triples)
    if subject is None:
        return CaptureFilter()
    values = {each.predicate: each.object for each in block.triples if each.subject == subject}
    since, until = _find_times(block, values.get(_STARTED))
    url, crawl = values.get(_term("requestedUrl"), ""), values.get(_term("crawl"), "")
    return CaptureFilter(
        capture=_id(subject),
        since=since,
        until=until,
        iri=url[1:-1] if url.startswith("<") else None,
        outcome=_OUTCOMES.get(values.get(_term("outcome"), "")),
        crawl=crawl[1:-1] if crawl.startswith('"') and crawl.endswith('"') else None,
    )


def _find_fetch(triples: list[_Triple]) -> str | None:
    """Return the one fetch that all patterns are about, or what is beside it; None when there may be more."""
    links = [each for each in triples if each.predicate in _LINKS]
    beside = {each.object for each in links}
    subjects = {each.subject for each in triples} - beside
    if len(subjects) != 1 or any(each.subject not in subjects for each in links):
        return None
    if any(each.subject in beside and each.predicate in (None, _GENERATED_BY) for each in triples):
        return None  # from a document the way leads on to other fetches
    return subjects.pop()


def _id(subject: str) -> str | None:
    prefix = f"<{v.ACTIVITIES}"
    if not subject.startswith(prefix) or "#" in subject:
        return None
    try:
        return str(UUID(subject[len(prefix) : -1]))
    except ValueError:
        return str(UUID(int=0))  # of no fetch


def _find_times(block: _Block, variable: str | None) -> tuple[int, int]:
    """Return the times between which the fetches of a block started."""
    since, until = 0, CaptureFilter().until
    for name, operator, literal in block.comparisons:
        moment = _milliseconds(literal)
        if name == variable and moment is not None:
            since = max(since, moment) if operator in (">", ">=", "=") else since
            until = min(until, moment + 1) if operator in ("<", "<=", "=") else until
    return since, until


def _milliseconds(literal: str) -> int | None:
    if not literal.endswith(_TIME):
        return None
    try:
        moment = datetime.fromisoformat(literal[1 : -len(_TIME)])
    except ValueError:
        return None
    return int(moment.timestamp() * 1000) if moment.tzinfo else None


def write_fetches(
    database: Database, needed: NeededFetches, file: BinaryIO, seconds_left: Callable[[], float]
) -> None:
    """Write the statements that a query needs, as N-Triples. Raises `QueryRefused` when they are too many.

    `seconds_left` is called now and then, and may raise. Raises `TimeoutError` when the time is over.
    """
    count, triples_of = 0, _triples_of(needed.predicates)
    with closing(database.session()) as session:
        buckets = count_buckets(session)
        for each in needed.filters:
            found = matching_captures(session, each, buckets, MOST_FETCHES + 1, seconds_left)
            while some := list(islice(found, _AT_ONCE)):
                count += len(some)
                if count > MOST_FETCHES:
                    raise QueryRefused(
                        f"the query is about more than {MOST_FETCHES:,} fetches. Restrict them with a FILTER "
                        "on prov:startedAtTime, or by tamias:requestedUrl, tamias:outcome or tamias:crawl. "
                        "'tamias export --graph metadata' writes all fetches.",
                        422,
                    )
                seconds_left()
                triples = [triple for record in some for triple in triples_of(record)]
                file.write(serialize(triples, format=RdfFormat.N_TRIPLES) or b"")
    file.flush()


def _triples_of(predicates: frozenset[str] | None) -> Callable[[CaptureRecord], list[Triple]]:
    """Return the fastest function that makes the needed statements of a fetch."""
    names = {f"<{v.term(name).value}>": name for name in VALUES if name not in _ALSO_OF_HOPS}
    if predicates is not None and predicates <= names.keys():
        wanted = [names[predicate] for predicate in predicates]
        return lambda record: activity_values(record, wanted)

    def chosen(record: CaptureRecord) -> list[Triple]:
        quads = activity_quads(record)
        return [
            quad.triple for quad in quads if predicates is None or f"<{quad.predicate.value}>" in predicates
        ]

    return chosen


def _refusal(why: str) -> QueryRefused:
    return QueryRefused(
        f"the query about urn:tamias:metadata cannot be answered: {why}. Such a query is about that graph "
        "alone, with all patterns in GRAPH <urn:tamias:metadata> { … }; query other graphs separately."
    )
