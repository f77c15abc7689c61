"""One thing of an RDF graph with what is said of it, as places for a drawing. Pure."""

from collections.abc import Iterable
from math import cos, pi, sin
from typing import Any

import msgspec
from pyoxigraph import Literal, NamedNode, Quad

MOST_RAYS = 10
_LONGEST = 26
_WIDE, _HIGH = 215.0, 135.0
"""Half of the drawing's width and height, less the room for names."""


class Ray(msgspec.Struct, frozen=True, kw_only=True):
    """One statement: what stands at its end, where, and by what it is joined."""

    x: float
    y: float
    predicate: str
    object: str
    literal: bool


class Star(msgspec.Struct, frozen=True):
    """The thing in the middle, and the statements around it."""

    subject: str
    rays: list[Ray]


def star(quads: Iterable[Quad], subject: Any) -> Star:
    """The first statements about a thing, around it."""
    about = list({(quad.predicate, quad.object): quad for quad in quads if quad.subject == subject}.values())
    rays = [_ray(quad, place, len(about[:MOST_RAYS])) for place, quad in enumerate(about[:MOST_RAYS])]
    return Star(short(subject), rays)


def short(term: Any) -> str:
    """A term as it fits beside a dot.

    >>> short(NamedNode("http://www.w3.org/2004/02/skos/core#prefLabel")), short(Literal("Wien"))
    ('prefLabel', 'Wien')
    """
    if isinstance(term, Literal):
        return _cut(term.value)
    if not isinstance(term, NamedNode):
        return _cut(str(term))
    tail = term.value.rstrip("/#").replace("#", "/").rpartition("/")[2]
    return _cut(tail or term.value)


def _ray(quad: Quad, place: int, rays: int) -> Ray:
    # A quarter turn back: the first stands above. Half a place on: none is right beside the middle.
    angle = 2 * pi * (place + 0.5) / rays - pi / 2
    return Ray(
        x=round(_WIDE * cos(angle), 1),
        y=round(_HIGH * sin(angle), 1),
        predicate=short(quad.predicate),
        object=short(quad.object),
        literal=isinstance(quad.object, Literal),
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
