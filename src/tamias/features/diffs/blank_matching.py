"""Matching of the blank nodes of a document with those of its next version.

First those of which the same is said all around; then those that one statement, the same in both versions
and with one node left open, can mean only one of in each.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tamias.content.blank_nodes import Colours, Statement
from tamias.model.document import Unreadable

MAX_ROUNDS = 1_000
_OPEN = b"_:"

Names = dict[bytes, bytes]


def named_alike(
    old: Sequence[Statement], new: Sequence[Statement], notes: list[str]
) -> tuple[list[bytes], list[bytes]]:
    """The statements as lines, with one label for what is one node in both, and another for any other."""
    try:
        old_colours, new_colours = Colours(old), Colours(new)
    except Unreadable as fault:
        notes.append(f"{fault}: they are compared by their labels")
        return _as_labelled(old), _as_labelled(new)
    if old_colours.entangled() or new_colours.entangled():
        notes.append(
            "some blank nodes cannot be distinguished: they are compared by the statements around them"
        )
    was, now = _by_colour(old_colours, new_colours)
    _by_statements(old, new, was, now)
    _name_rest(old_colours, was, b"_:old")
    _name_rest(new_colours, now, b"_:new")
    return [each.written(was) for each in old], [each.written(now) for each in new]


def _as_labelled(statements: Iterable[Statement]) -> list[bytes]:
    return [each.written({node: node for node in each.nodes}) for each in statements]


def _by_colour(old: Colours, new: Colours) -> tuple[Names, Names]:
    """Nodes of a colour that both documents have equally often."""
    was, now = Counter(old.of.values()), Counter(new.of.values())
    both = {colour: b"_:n" + colour.hex().encode() for colour, times in was.items() if now[colour] == times}
    return (
        {node: both[colour] for node, colour in old.of.items() if colour in both},
        {node: both[colour] for node, colour in new.of.items() if colour in both},
    )


def _by_statements(old: Sequence[Statement], new: Sequence[Statement], was: Names, now: Names) -> None:
    matched = 0
    left_old, left_new = _unsettled(old, was), _unsettled(new, now)
    for _ in range(MAX_ROUNDS):
        before = matched
        meant_old, meant_new = _meant(left_old, was), _meant(left_new, now)
        for text in sorted(meant_old.keys() & meant_new.keys(), key=_strength):
            one, other = meant_old[text], meant_new[text]
            if one is not None and other is not None and one not in was and other not in now:
                was[one] = now[other] = b"_:m%d" % matched
                matched += 1
        if matched == before:
            return
        left_old, left_new = _unsettled(left_old, was), _unsettled(left_new, now)


def _unsettled(statements: Iterable[Statement], names: Names) -> list[Statement]:
    return [each for each in statements if any(node not in names for node in each.nodes)]


def _meant(statements: Iterable[Statement], names: Names) -> dict[bytes, bytes | None]:
    """The node that each text with one open node means; None where it may mean several."""
    found: dict[bytes, bytes | None] = {}
    for statement in statements:
        nodes = {node for node in statement.nodes if node not in names}
        if len(nodes) == 1:
            (node,) = nodes
            text = statement.written(defaultdict(lambda: _OPEN, names))
            found[text] = node if text not in found or found[text] == node else None
    return found


def _strength(text: bytes) -> tuple[bool, bytes]:
    """Return a sort key; statements that lead to a node identify it better than its own statements."""
    return text.startswith(_OPEN + b" "), text


def _name_rest(colours: Colours, names: Names, prefix: bytes) -> None:
    rest = sorted((colour, node) for node, colour in colours.of.items() if node not in names)
    for number, (_, node) in enumerate(rest):
        names[node] = prefix + b"%d" % number
