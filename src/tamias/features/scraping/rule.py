"""The content of a rule file, checked and resolved, as plain values."""

from typing import Literal as OneOf

import msgspec
from pyoxigraph import Literal, NamedNode

Term = NamedNode | Literal


class Selector(msgspec.Struct, frozen=True):
    """`h1`, `a@href`, `.` (the element at hand) or `@href` (its attribute)."""

    css: str
    """Empty for the element at hand."""
    attribute: str | None = None


class ValueRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for values: where they come from and how they are changed."""

    place: str
    """File and line, for problems."""
    selector: Selector | None = None
    constant: Term | None = None
    """Instead of a selector."""
    template: str | None = None
    """A constant with variables."""
    is_iri: bool = False
    prefix: str = ""
    """A template, put before the text."""
    datatype: NamedNode | None = None
    language: str | None = None
    after: str = ""
    before: str = ""
    split: str = ""
    number: OneOf["", ".", ","] = ""
    """The decimal sign, where the first number in the text is wanted."""
    date: str = ""
    """The form of a date, as `strptime` has it."""
    first: bool = False
    as_list: bool = False


class SubjectRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for a subject: the page, each match of a selector, or something nested."""

    place: str
    each: str | None = None
    subject: str | ValueRule | None = None
    """A template or where to find it; None for a blank node."""
    types: tuple[NamedNode, ...] = ()
    properties: tuple[tuple[NamedNode, "ValueRule | SubjectRule"], ...] = ()


class Pagination(msgspec.Struct, frozen=True, kw_only=True):
    """A list whose pages are numbered in the query: `?page=2`."""

    parameter: str
    last: Selector | int
    """The number of the last page, or where it stands."""
    start: int = 2


class PageRule(msgspec.Struct, frozen=True, kw_only=True):
    """A table `[[page]]`."""

    match: tuple[str, ...]
    unless: tuple[str, ...]
    subject: SubjectRule
    follow: tuple[Selector, ...]
    follow_only: bool
    paginate: Pagination | None
    counts: bool
    """Whether a selector counts siblings, which costs the square of their number."""


class PortalRules(msgspec.Struct, frozen=True, kw_only=True):
    """A rule file."""

    hosts: tuple[str, ...]
    """`data.example.org`, or `*.example.org` for that domain and all below it."""
    pages: tuple[PageRule, ...]
