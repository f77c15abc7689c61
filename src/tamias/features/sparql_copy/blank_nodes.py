"""Labels of blank nodes: whether they are the same in every response of an endpoint."""

from collections import Counter
from itertools import islice

import msgspec
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from tamias.content.blank_labels import blank_nodes
from tamias.features.sparql_copy.queries import TRIPLE_TERM, quoted, some
from tamias.features.sparql_copy.source import StatementSource
from tamias.features.sparql_copy.terms import writable

SAMPLE = 200
_CANDIDATES = 4
_UNCUT = 50
"""No server gives fewer rows than this at once."""

Pointer = tuple[str, str]
"""The label of a blank node, and the pattern of statements among which it must be found again."""


class Sample(msgspec.Struct, frozen=True):
    """Statements with blank nodes of a pattern, which is of the default graph or of named graphs."""

    quads: list[Quad]
    where: str
    named: bool

    @property
    def turns(self) -> dict[str, int]:
        """Return each label with the number of others that come before it."""
        return _turns(self.quads)


async def sampled(source: StatementSource, where: str, offset: int = 0) -> list[Quad]:
    """Return some statements of a pattern, those with blank nodes in them. Raises `QueryFailed`."""
    quads = (await source.matching(where, SAMPLE, offset)).quads
    return [quad for quad in quads if any(blank_nodes(quad.subject, quad.object))]


async def labels_hold(source: StatementSource, sample: Sample) -> bool:
    """Requests a blank node again, by what is said of it, in a response with fewer of them.

    A server that numbers them in each response would give it a lower number there. In doubt, they do not
    hold. Raises `QueryFailed`.
    """
    turns = sample.turns
    pointers = _pointers(sample.quads, named=sample.named)
    shared = Counter(where for _, where in pointers)
    pointers.sort(key=lambda pointer: (shared[pointer[1]], -turns[pointer[0]]))
    missed = 0
    for label, pattern in islice(dict.fromkeys(pointers), _CANDIDATES):
        again = (await source.matching(pattern, SAMPLE)).quads
        if len(again) >= max(_UNCUT, len(sample.quads)):
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
    # A later window has some of the labels, and not in the same sequence.
    later = list(_turns(await sampled(source, sample.where, len(sample.quads) // 2)))
    differ = any(one != other for one, other in zip(turns, later, strict=False))
    return differ and not turns.keys().isdisjoint(later)


def _turns(quads: list[Quad]) -> dict[str, int]:
    """Return each label with the number of others before it."""
    turns: dict[str, int] = {}
    for quad in quads:
        for node in blank_nodes(quad.subject, quad.object):
            turns.setdefault(node.value, len(turns))
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
        elif isinstance(subject, NamedNode) and writable(subject.value):
            fixed = f"VALUES (?s ?p) {{ (<{subject.value}> <{quad.predicate.value}>) }}"
            kind = TRIPLE_TERM if isinstance(value, Triple) else "isBlank(?o)"
            pointers += [(node.value, some(kind, fixed, named=named)) for node in blank_nodes(value)]
        elif isinstance(value, BlankNode):
            pointers.append((value.value, some("isBlank(?s) && isBlank(?o)", fixed, named=named)))
    return pointers
