"""What a query is about: a set of statements, said so that any endpoint can be asked for just these."""

import msgspec


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the order of strings: after one, up to another, that one included unless `below`.

    Which order it is, is the server's affair: the spans before and after a string are exact in any.
    """

    after: str | None = None
    upto: str | None = None
    below: bool = False


class Scope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All statements that have these terms; a term that is not given is free."""

    named: bool = False
    """In named graphs; else in the default graph."""
    graph: str | None = None
    subject: str | None = None
    predicate: str | None = None
    same: str | None = None
    """The `STR` of the object, which may still be a literal of many types and languages."""
    nameless_graphs: bool = False
    """Only graphs whose name is no IRI."""
    nameless: bool = False
    """Only subjects that are no IRIs: blank nodes, in the main."""
    opaque: bool = False
    """Only objects of which `STR` says nothing: blank nodes, in the main."""
    blankless: bool = False
    """Only statements without blank nodes."""
    apart: bool = False
    """Of a default graph that is the union of all others: only what is in none of them."""

    @property
    def free(self) -> tuple[str, ...]:
        """The variables, in the order of a quad.

        >>> Scope(named=True, subject="http://example.org/s").free
        ('g', 'p', 'o')
        """
        graph = self.graph if self.named else ""
        fixed = {"g": graph, "s": self.subject, "p": self.predicate, "o": None}
        return tuple(name for name, term in fixed.items() if term is None)

    @property
    def plain(self) -> bool:
        """Whether nothing is said of the objects, so that each subject there is has statements in it."""
        return not (self.same or self.opaque or self.blankless or self.apart)
