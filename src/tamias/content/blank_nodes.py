"""Names for blank nodes that depend on what is said of them, not on how a document labels them.

Nodes are distinguished by their neighbourhoods, as far as needed. Equal graphs get equal names; where nodes
cannot be distinguished and are entangled, nothing is said. (Exact methods can take exponential time.)
"""

import re
import resource
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from hashlib import blake2b

import msgspec
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse, serialize

from tamias.model.document import Unreadable
from tamias.model.process import run_within

SECONDS = 60
MEMORY = 4 << 30
"""Of addresses."""
MOST_BYTES = 64 << 20


def canonical_nquads(nquads: bytes) -> bytes:
    """Return the statements as canonical N-Quads: sorted, each once. Raises `Unreadable` beyond a limit."""
    if len(nquads) > MOST_BYTES:
        raise Unreadable(f"more than {MOST_BYTES >> 20} MiB of statements")
    if (found := run_within(2 * SECONDS, __name__, content=nquads)) is None:
        raise Unreadable(
            f"its blank nodes are not told apart in {SECONDS} s and {MEMORY >> 30} GiB of memory"
        )
    return found


def main() -> None:
    """Write the canonical form of what is on stdin to stdout."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    graph = Dataset(parse(sys.stdin.buffer, format=RdfFormat.N_QUADS))
    graph.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    lines = (serialize(graph, format=RdfFormat.N_QUADS) or b"").splitlines(keepends=True)
    sys.stdout.buffer.writelines(sorted(lines))


if __name__ == "__main__":
    main()


MAX_STEPS = 5_000_000
_TERM = re.compile(rb'"(?:[^"\\]|\\.)*"|<[^<>\s]*>|(_:[^\s]+)')
_GAP = b"\0"
_NONE = b""


class Statement(msgspec.Struct, frozen=True):
    """A line of N-Quads with gaps for its blank nodes."""

    pieces: tuple[bytes, ...]
    nodes: tuple[bytes, ...]

    def written(self, names: dict[bytes, bytes]) -> bytes:
        """The line with other names."""
        text = [self.pieces[0]]
        for node, piece in zip(self.nodes, self.pieces[1:], strict=True):
            text += [names[node], piece]
        return b"".join(text)


def with_gaps(line: bytes) -> Statement | None:
    """The statement of a line that has blank nodes; None if it has none."""
    if b"_:" not in line:
        return None
    places = [match.span(1) for match in _TERM.finditer(line) if match[1]]
    if not places:
        return None
    ends = [0, *(end for _, end in places)]
    starts = [*(start for start, _ in places), len(line)]
    pieces = tuple(line[end:start] for end, start in zip(ends, starts, strict=True))
    return Statement(pieces, tuple(line[start:end] for start, end in places))


class Colours:
    """The blank nodes of a graph, each with a colour: the digest of what is said around it."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._about: dict[bytes, list[Statement]] = defaultdict(list)
        self._steps = 0
        for statement in statements:
            for node in dict.fromkeys(statement.nodes):
                self._about[node].append(statement)
        self.of: dict[bytes, bytes] = dict.fromkeys(self._about, _NONE)
        self._refine()

    def _refine(self) -> None:
        """Colours again what stands beside a newly coloured node, until no more are distinguished."""
        alike: dict[bytes, set[bytes]] = defaultdict(set, {_NONE: set(self._about)})
        waiting = set(self._about)
        while waiting:
            fresh = {node: self._seen_from(node) for node in waiting}
            waiting = set()
            for node in self._distinguish(fresh, alike):
                waiting.update(other for said in self._about[node] for other in said.nodes if other != node)
            waiting = {node for node in waiting if len(alike[self.of[node]]) > 1}

    def _distinguish(self, fresh: dict[bytes, bytes], alike: dict[bytes, set[bytes]]) -> list[bytes]:
        """Gives the fresh colours where they tell nodes apart; returns the nodes that got one."""
        looked_at: dict[bytes, list[bytes]] = defaultdict(list)
        for node in fresh:
            looked_at[self.of[node]].append(node)
        changed: list[bytes] = []
        for colour, nodes in looked_at.items():
            is_all = colour != _NONE and len(nodes) == len(alike[colour])
            keeping = _most_common(fresh[node] for node in nodes) if is_all else None
            changed += [node for node in nodes if fresh[node] != keeping]
        for node in changed:
            alike[self.of[node]].discard(node)
            alike[fresh[node]].add(node)
            self.of[node] = fresh[node]
        return changed

    def _seen_from(self, node: bytes) -> bytes:
        self._steps += len(self._about[node])
        if self._steps > MAX_STEPS:
            raise Unreadable(f"blank nodes are not distinguished in {MAX_STEPS} steps")
        digest = blake2b(self.of[node], digest_size=16)
        for view in sorted(self._view(node, statement) for statement in self._about[node]):
            digest.update(view)
        return digest.digest()

    def _view(self, node: bytes, statement: Statement) -> bytes:
        others = (b"self" if other == node else self.of[other] for other in statement.nodes)
        text = _GAP.join((*statement.pieces, *others))
        return blake2b(text, digest_size=16).digest()

    def entangled(self) -> bool:
        """True if nodes of equal colours are joined in rings, so that equal colours prove nothing."""
        counts = Counter(self.of.values())
        forest = _Forest()
        for node, statements in self._about.items():
            for statement in statements:
                double = {other for other in statement.nodes if counts[self.of[other]] > 1}
                if len(double) > 1 and node == min(double) and not forest.join(double):
                    return True
        return False


def _most_common(colours: Iterable[bytes]) -> bytes:
    """Return the most common colour, the first in sort order of several."""
    return min(Counter(colours).items(), key=lambda each: (-each[1], each[0]))[0]


class _Forest:
    """Trees of nodes, by the root of each."""

    def __init__(self) -> None:
        self._parent: dict[bytes, bytes] = {}

    def _root(self, node: bytes) -> bytes:
        while (parent := self._parent.get(node, node)) != node:
            self._parent[node] = self._parent.get(parent, parent)
            node = parent
        return node

    def join(self, nodes: set[bytes]) -> bool:
        """Joins two trees by a statement; False if they were one, or if the statement joins more."""
        first, *others = (self._root(node) for node in nodes)
        if len(others) > 1 or others[0] == first:
            return False
        self._parent[others[0]] = first
        return True


def divide_blank(lines: Iterable[bytes]) -> tuple[list[bytes], list[Statement]]:
    """Return the lines without blank nodes, and the statements with them."""
    ground: list[bytes] = []
    blank: list[Statement] = []
    for line in lines:
        statement = with_gaps(line)
        if statement is None:
            ground.append(line)
        else:
            blank.append(statement)
    return ground, blank


def named_lines(lines: Iterable[bytes]) -> set[bytes]:
    """The same statements, each blank node named by its colour, and of those of a colour each by a number.

    Where no names can be found, nodes keep their labels.
    """
    ground, blank = divide_blank(lines)
    try:
        colours = sorted(Colours(blank).of.items(), key=lambda each: each[::-1])
    except Unreadable:
        return {*ground, *(each.written({node: node for node in each.nodes}) for each in blank)}
    count: Counter[bytes] = Counter()
    names = {}
    for node, colour in colours:
        names[node] = b"_:b%bn%d" % (colour.hex().encode(), count[colour])
        count[colour] += 1
    return {*ground, *(each.written(names) for each in blank)}


def canonical_lines(lines: Iterable[bytes]) -> list[bytes]:
    """The same statements in order, each blank node named by its colour. Raises `Unreadable`."""
    ground, blank = divide_blank(lines)
    colours = Colours(blank)
    if colours.entangled():
        raise Unreadable("blank nodes that cannot be distinguished form rings")
    names = {node: b"_:" + colour.hex().encode() for node, colour in colours.of.items()}
    return sorted([*ground, *(statement.written(names) for statement in blank)])
