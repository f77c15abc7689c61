"""Whether blank nodes have the same labels in every answer of an endpoint, however its rows are ordered."""

from collections import Counter
from itertools import islice

from msgspec.structs import replace

from tamias.doors.sparql import queries
from tamias.doors.sparql.answers import Row
from tamias.doors.sparql.conversation import Conversation
from tamias.doors.sparql.scope import Scope
from tamias.doors.sparql.terms import is_blank, writable

_SAMPLE = 200
_CANDIDATES = 4
_UNCUT = 50
"""No server gives fewer rows than this at once."""


async def labels_hold(conversation: Conversation) -> bool:
    """Asks for a blank node again, by what is said of it, in an answer with fewer of them. Raises `Trouble`.

    A server that numbers them in each answer would give it a lower number there. In doubt, they do not hold.
    """
    sample = await conversation.patient(queries.some_blanks(_SAMPLE))
    turns = _turns(sample)
    pointers = _pointers(sample)
    shared = Counter(scope for _, _, scope in pointers)
    pointers.sort(key=lambda pointer: (shared[pointer[2]], -turns[pointer[0]]))
    for label, variable, scope in islice(pointers, _CANDIDATES):
        rows = await conversation.patient(queries.whole(scope, _SAMPLE))
        if len(rows) >= max(_UNCUT, len(sample)):
            continue
        again = {row[variable].text for row in rows if variable in row}
        if label not in again:
            return False
        if len(again) <= turns[label] or len(turns) == 1:
            return True
    return False


def _turns(rows: list[Row]) -> dict[str, int]:
    """Each label with the number of others that come before it."""
    turns: dict[str, int] = {}
    for row in rows:
        for variable in ("s", "o"):
            if variable in row and is_blank(row[variable]):
                turns.setdefault(row[variable].text, len(turns))
    return turns


def _pointers(rows: list[Row]) -> list[tuple[str, str, Scope]]:
    """Labels of blank nodes, where they stand, and statements among which they must be found again."""
    pointers = []
    for row in rows:
        if not {"s", "p", "o"} <= row.keys() or not writable(row["p"].text):
            continue
        graph, subject, value = row.get("g"), row["s"], row["o"]
        if graph is not None and (is_blank(graph) or not writable(graph.text)):
            continue
        place = Scope(named=graph is not None, graph=graph.text if graph else None, predicate=row["p"].text)
        if is_blank(subject) and not is_blank(value):
            pointers.append((subject.text, "s", replace(place, same=value.text, nameless=True)))
        elif is_blank(value) and not is_blank(subject) and writable(subject.text):
            pointers.append((value.text, "o", replace(place, subject=subject.text, opaque=True)))
        elif is_blank(value):
            pointers.append((value.text, "o", replace(place, nameless=True, opaque=True)))
    return pointers
