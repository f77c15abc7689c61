"""Whether a blank node has the same label in every response of an endpoint, however its rows are ordered."""

from collections import Counter
from itertools import islice

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.harvesters.sparql.queries import anywhere, quoted
from tamias.harvesters.sparql.source import StatementSource
from tamias.harvesters.sparql.terms import writable

SOME = anywhere("", "isBlank(?s) || isBlank(?o)")
SAMPLE = 200
_CANDIDATES = 4
_UNCUT = 50
"""No server gives fewer rows than this at once."""

Pointer = tuple[str, str]
"""The label of a blank node, and the pattern of statements among which it must be found again."""


async def labels_hold(source: StatementSource, sample: list[Quad]) -> bool:
    """Requests a blank node again, by what is said of it, in a response with fewer of them.

    A server that numbers them in each response would give it a lower number there. In doubt, they do not
    hold. Raises `QueryFailed`.
    """
    turns = _turns(sample)
    pointers = _pointers(sample)
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
    return not missed and await _windows_agree(source, list(turns), len(sample) // 2)


async def _windows_agree(source: StatementSource, labels: list[str], offset: int) -> bool:
    """Whether a later window has some of the labels, and not in the same sequence."""
    later = list(_turns((await source.matching(SOME, SAMPLE, offset)).quads))
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


def _pointers(quads: list[Quad]) -> list[Pointer]:
    pointers = []
    for quad in quads:
        subject, value = quad.subject, quad.object
        if not writable(quad.predicate.value):
            continue
        fixed = f"VALUES ?p {{ <{quad.predicate.value}> }}"
        if isinstance(subject, BlankNode) and isinstance(value, NamedNode | Literal):
            said = f"isBlank(?s) && STR(?o) = {quoted(value.value)}"
            pointers.append((subject.value, anywhere(fixed, said)))
        elif isinstance(value, BlankNode) and isinstance(subject, NamedNode) and writable(subject.value):
            fixed += f" VALUES ?s {{ <{subject.value}> }}"
            pointers.append((value.value, anywhere(fixed, "isBlank(?o)")))
        elif isinstance(value, BlankNode):
            pointers.append((value.value, anywhere(fixed, "isBlank(?s) && isBlank(?o)")))
    return pointers
