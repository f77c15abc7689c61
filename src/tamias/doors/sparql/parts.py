"""How a copy goes on: parts, each a set of statements and the way they are paged, one within the other.

A part whose key has more statements than a page goes one level down: graph, subject, predicate, object.
"""

from typing import Literal

import msgspec
from msgspec.structs import replace

from tamias.doors.sparql.scope import Scope, Span

Way = Literal["whole", "blanks", "backbone", "keys", "rows", "offset"]
"""All at once; all with blank nodes at once; choosing a predicate to list subjects by; by listed keys, as
many to a page as go in; by spans of the object; by number, for what has no key."""

MOST_BACKBONES = 8


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Statements to be copied, and how far that has come."""

    scope: Scope
    way: Way
    key: str = ""
    """The variable that is listed: g, s or p."""
    name: str | None = None
    """What the part is called in the listing of the part around it."""
    span: Span = Span()
    done: str | None = None
    """Of the keys in the span, those up to this one are copied (in the order of code points)."""
    room: int = 0
    """The limit with which the keys of the span were listed."""
    start: int = 0
    """What was copied of the scope before the span."""
    end: str | None = None
    """Of a part by rows: it ends before this object."""
    through: str | None = None
    without: tuple[str, ...] = ()
    keys: int | None = None
    """About how many keys there are."""
    offset: int = 0
    last: str | None = None
    """The mark of the last row before the offset."""
    order: bool = True
    expected: int | None = None
    copied: int = 0
    base: int = 0
    """What was copied of the scope before this way of it began."""

    @property
    def satisfied(self) -> bool:
        """Whether as many statements came as the endpoint counts."""
        return self.copied == self.expected

    @property
    def asked(self) -> Span:
        """The span to ask for."""
        if self.span.upto is None and self.end is not None:
            return Span(after=self.span.after, upto=self.end, below=True)
        return self.span

    @property
    def remaining(self) -> int | None:
        """Statements still to come, where that is known."""
        return None if self.expected is None else max(0, self.expected - self.copied)


def default_graph(*, apart: bool, expected: int | None) -> Part:
    """The part that the default graph is."""
    return Part(scope=Scope(apart=apart), way="whole", expected=expected)


def named_graphs() -> Part:
    """The part that all named graphs are."""
    return Part(scope=Scope(named=True), way="keys", key="g")


def inside(part: Part, name: str, expected: int | None, *, stable: bool) -> Part:
    """What has one key of a listing, as a part of its own; `stable` says whether blank nodes keep labels."""
    scope = part.scope
    if part.key == "g":
        graph = Part(scope=replace(scope, graph=name), way="whole", name=name, expected=expected)
        return opened(graph, stable=stable)
    if part.key == "s":
        inner = replace(scope, subject=name)
        if scope.predicate is None:
            return Part(scope=inner, way="keys", key="p", name=name, expected=expected)
        return Part(scope=inner, way="rows", name=name, expected=expected)
    inner = replace(scope, predicate=name)
    if scope.subject is None and not scope.nameless:
        return Part(scope=inner, way="keys", key="s", name=name, expected=expected)
    return Part(scope=inner, way="rows", name=name, expected=expected)


def parted(part: Part, text: str) -> tuple[Part, Part, Part]:
    """Around the many objects that say the same, which no span can part: what is after, before, and they."""
    after = replace(part, span=Span(after=text))
    before = Part(scope=part.scope, way="rows", span=Span(after=part.span.after), end=text)
    return after, before, Part(scope=replace(part.scope, same=text), way="offset")


def opened(part: Part, *, stable: bool) -> Part:
    """A whole graph, begun anew as one that is larger than a page."""
    graph = part.scope
    scope = Scope(named=graph.named, graph=graph.graph, apart=graph.apart)
    return Part(scope=scope, way="backbone" if stable else "blanks", name=part.name, expected=part.expected)


def following(part: Part) -> Part | None:
    """The next way for the same statements, when this one has brought all it can; None after the last."""
    scope = part.scope
    if part.way == "blanks":
        return _next(part, way="backbone")
    if part.way == "backbone":
        return _next(part, way="keys", key="s", through=part.through, without=part.without, keys=part.keys)
    if part.way == "rows":
        if scope.blankless or part.end is not None:
            return None
        return _next(part, way="offset", scope=replace(scope, opaque=True))
    if part.way != "keys" or part.key == "p":
        return None
    if part.key == "g":
        return _next(part, way="offset", scope=replace(scope, nameless_graphs=True))
    if part.through is not None:
        return _next(part, way="backbone", without=(*part.without, part.through))
    if scope.blankless:
        return None
    rest = replace(scope, nameless=True)
    if scope.predicate is not None:
        return _next(part, way="offset", scope=rest)
    return _next(part, way="keys", key="p", scope=rest)


def otherwise(part: Part, *, stable: bool) -> Part | None:
    """Another way for statements that could not be had in this one; None when there is none left."""
    again = replace(part, copied=part.base)
    if part.way == "whole":
        return opened(part, stable=stable)
    if part.way == "blanks":
        return _next(again, way="backbone")
    if part.way == "backbone":
        return _next(again, way="keys", key="s", without=part.without)
    if part.way == "offset":
        return replace(_next(again, way="offset"), order=False) if part.order else None
    if part.way == "keys" and part.key == "s" and part.scope.predicate is None:
        return Part(scope=part.scope, way="keys", key="p", name=part.name, expected=part.expected)
    return _next(again, way="offset")


def _next(
    part: Part,
    *,
    way: Way,
    scope: Scope | None = None,
    key: str = "",
    through: str | None = None,
    without: tuple[str, ...] = (),
    keys: int | None = None,
) -> Part:
    return Part(
        scope=scope or part.scope,
        way=way,
        key=key,
        name=part.name,
        through=through,
        without=without,
        keys=keys,
        expected=part.expected,
        copied=part.copied,
        base=part.copied,
        start=part.copied,
    )
