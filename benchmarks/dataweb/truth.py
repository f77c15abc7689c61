"""Recall and precision of what a crawler has. A blank node is equal to any other."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from pyoxigraph import BlankNode, RdfFormat, Triple, parse

from benchmarks.dataweb.web.web import OrcaWeb

ANY_NODE = BlankNode("any")
SUFFIXES = {".nq": RdfFormat.N_QUADS, ".nt": RdfFormat.N_TRIPLES, ".ttl": RdfFormat.TURTLE}
_TIME = re.compile(r'"[^"]*"\^\^<http://www.w3.org/2001/XMLSchema#time>')


class RecallScore(msgspec.Struct, frozen=True):
    """How much of the truth was found, and how much of what was found is true."""

    expected: int
    found: int
    """Of the expected."""
    macro_recall: float
    by_kind: dict[str, tuple[int, int]]
    """Found and expected."""
    claimed: int
    """All different statements the crawler has about nodes whose truth is known whole."""
    true: int
    """Those of them that the web says."""
    lost: list[str] = []
    """The first statements that were not found."""

    @property
    def recall(self) -> float:
        return self.found / self.expected if self.expected else 1.0

    @property
    def precision(self) -> float | None:
        return self.true / self.claimed if self.claimed else None


def score(web: OrcaWeb, found: set[str], *, later: bool = False) -> RecallScore:
    """Judges the statements of a crawler, as `keys` gives them."""
    by_kind: dict[str, tuple[int, int]] = {}
    shares: list[float] = []
    loose = loosened(web, found)
    lost: list[str] = []
    whole: set[str] = set()
    for address, built in web.nodes.items():
        lines = built.later if later and built.later is not None else built.truth
        expected = list(keys(b"".join(lines), RdfFormat.N_TRIPLES))
        whole.update(expected, keys(b"".join(built.also), RdfFormat.N_TRIPLES))
        missed = [key for key in expected if key not in found and key not in loose]
        lost += missed[:20]
        had = len(expected) - len(missed)
        if expected:
            shares.append(had / len(expected))
        kind = web.kind_of(address)
        earlier = by_kind.get(kind, (0, 0))
        by_kind[kind] = (earlier[0] + had, earlier[1] + len(expected))
    claimed = {key for key in found if closed(web, key)}
    return RecallScore(
        expected=sum(pair[1] for pair in by_kind.values()),
        found=sum(pair[0] for pair in by_kind.values()),
        macro_recall=sum(shares) / len(shares) if shares else 1.0,
        by_kind=by_kind,
        claimed=len(claimed),
        true=len(claimed & whole),
        lost=lost[:60],
    )


def loosened(web: OrcaWeb, found: set[str]) -> set[str]:
    """The found statements with any term in place of subject or object, where the truth leaves these open."""
    lines = [line for built in web.nodes.values() for line in built.truth if b"_:" in line]
    predicates = {f"<{quad.predicate.value}>" for quad in parse(b"".join(lines), format=RdfFormat.N_TRIPLES)}
    loose: set[str] = set()
    for key in found:
        subject, predicate, value = key.split(" ", 2)
        if predicate in predicates:
            loose |= {
                f"_:any {predicate} {value}",
                f"{subject} {predicate} _:any",
                f"_:any {predicate} _:any",
            }
    return loose


def closed(web: OrcaWeb, key: str) -> bool:
    """Whether all that is to be said about the subject is known."""
    host = key[8 : key.find("/", 8)].partition(":")[0] if key.startswith("<http://") else ""
    built = web.nodes.get(host)
    return built is not None and built.closed


def keys(text: bytes | Any, form: RdfFormat) -> Iterator[str]:
    """Statements as strings, equal when the statements are; graphs and labels of blank nodes left out."""
    for quad in parse(text, format=form, lenient=True):
        subject = ANY_NODE if isinstance(quad.subject, BlankNode) else quad.subject
        value = ANY_NODE if isinstance(quad.object, BlankNode) else quad.object
        yield _TIME.sub("_:any", str(Triple(subject, quad.predicate, value)))


def read_found(files: Iterable[Path]) -> set[str]:
    """All statements in a crawler's files."""
    found: set[str] = set()
    for file in files:
        with file.open("rb") as text:
            found.update(keys(text, SUFFIXES[file.suffix]))
    return found
