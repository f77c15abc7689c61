"""Whether a blank node has the same label in every response of an endpoint, however its rows are ordered."""

from collections import Counter
from itertools import islice

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.harvesters.sparql.queries import quoted, some
from tamias.harvesters.sparql.source import StatementSource
from tamias.harvesters.sparql.terms import writable

_BLANK = "isBlank(?s) || isBlank(?o)"
SAMPLE = 200
_CANDIDATES = 4
_UNCUT = 50
"""No server gives fewer rows than this at once."""

Pointer = tuple[str, str]
"""The label of a blank node, and the pattern of statements among which it must be found again."""


async def sampled(source: StatementSource, offset: int = 0, *, named: bool) -> list[Quad]:
    """Some statements with blank nodes, of the default graph or of named graphs. Raises `QueryFailed`."""
    return (await source.matching(some(_BLANK, named=named), SAMPLE, offset)).quads


async def labels_hold(source: StatementSource, sample: list[Quad], *, named: bool) -> bool:
    """Requests a blank node again, by what is said of it, in a response with fewer of them.

    A server that numbers them in each response would give it a lower number there. In doubt, they do not
    hold. Raises `QueryFailed`.
    """
    turns = _turns(sample)
    pointers = _pointers(sample, named=named)
    shared = Counter(where for _, where in pointers)
    pointers.sort(key=lambda pointer: (shared[pointer[1]], -turns[pointer[0]]))
    missed = 0
    for label, where in islice(dict.fromkeys(pointers), _CANDIDATES):
        again = (await source.matching(where, SAMPLE)).quads
        if len(again) >= max(_UNCUT, len(sample)):
            continue
        labels = _turns(again)
        if label not in labels:
            missed += 1
            if missed > 1:  # one may be missing for another reason, such as a response cut short
                return False
        elif len(labels) <= turns[label] or len(turns) == 1:
            return True
    if missed:
        return False
    later = _turns(await sampled(source, len(sample) // 2, named=named))
    return _windows_agree(list(turns), list(later))


def _windows_agree(labels: list[str], later: list[str]) -> bool:
    """Whether a later window has some of the labels, and not in the same sequence."""
    common = min(len(labels), len(later))
    return not set(labels).isdisjoint(later) and labels[:common] != later[:common]


def _turns(quads: list[Quad]) -> dict[str, int]:
    """Each label with the number of others that come before it."""
    turns: dict[str, int] = {}
    for quad in quads:
        for term in (quad.subject, quad.object):
            if isinstance(term, BlankNode):
                turns.setdefault(term.value, len(turns))
    return turns


def _pointers(quads: list[Quad], *, named: bool) -> list[Pointer]:
    pointers = []
    for quad in quads:
        subject, value = quad.subject, quad.object
        if not writable(quad.predicate.value):
            continue
        fixed = f"VALUES ?p {{ <{quad.predicate.value}> }}"
        if isinstance(subject, BlankNode) and isinstance(value, NamedNode | Literal):
            said = f"isBlank(?s) && STR(?o) = {quoted(value.value)}"
            pointers.append((subject.value, some(said, fixed, named=named)))
        elif isinstance(value, BlankNode) and isinstance(subject, NamedNode) and writable(subject.value):
            fixed = f"VALUES (?s ?p) {{ (<{subject.value}> <{quad.predicate.value}>) }}"
            pointers.append((value.value, some("isBlank(?o)", fixed, named=named)))
        elif isinstance(value, BlankNode):
            pointers.append((value.value, some("isBlank(?s) && isBlank(?o)", fixed, named=named)))
    return pointers
