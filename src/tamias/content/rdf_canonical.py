"""Canonical N-Quads by RDFC-1.0. A process of its own makes them: a hostile graph can take forever."""

import resource
import sys

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
