"""Applies the rules for a page to its tree, within limits."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from urllib.parse import urlsplit

from pyoxigraph import BlankNode, Literal, NamedNode, Quad
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tamias.features.markup.statements import named_node, resolved
from tamias.features.scraping.words import (
    PREFIXES,
    PageRule,
    Pagination,
    Selector,
    SubjectRule,
    Term,
    ValueRule,
    filled,
)
from tamias.model.finding import Finding, Links, Problem, Quads
from tamias.model.vocabulary import RDF_TYPE

_NUMBER_TEXT = re.compile(r"[-\u2212+]?\d[\d.,'\u2019 \u00a0\u202f]{0,40}")
_NOT_IN_NUMBERS = re.compile(r"['\u2019 \u00a0\u202f]")
_INTEGER, _DECIMAL, _DATE, _DATE_TIME = (
    NamedNode(PREFIXES["xsd"] + name) for name in ("integer", "decimal", "date", "dateTime")
)


class UnfitError(Exception):
    """A text from which a rule cannot make its value; the message says why."""


def texts(rule: ValueRule, text: str) -> Iterator[str]:
    """The text, or its parts, with space made plain and what is not wanted cut off."""
    for part in text.split(rule.split) if rule.split else [text]:
        plain = " ".join(part.split())
        if rule.after:
            plain = plain.partition(rule.after)[2] or (plain if rule.after not in plain else "")
        if rule.before:
            plain = plain.partition(rule.before)[0]
        if plain := plain.strip():
            yield plain


def term(rule: ValueRule, text: str, prefix: str, base: str) -> Term:
    """The value that the rule makes from the text. Raises `UnfitError`."""
    if rule.number:
        text, datatype = _number(text, rule.number)
    elif rule.date:
        text, datatype = _date(text, rule.date)
    else:
        datatype = None
    if rule.is_iri:
        return _iri(prefix + text, base)
    if rule.language:
        return Literal(prefix + text, language=rule.language)
    return Literal(prefix + text, datatype=rule.datatype or (None if prefix else datatype))


def _iri(reference: str, base: str) -> NamedNode:
    node = named_node(resolved(reference, base))
    if node is None:
        raise UnfitError(f"{_shown(reference)} is not an IRI")
    return node


def _number(text: str, sign: str) -> tuple[str, NamedNode]:
    """The first number, without what groups its digits.

    >>> _number("about 1,234.50 t", ".")[0], _number("1.234 Dateien", ",")[0]
    ('1234.50', '1234')
    """
    found = _NUMBER_TEXT.search(text)
    if found is None:
        raise UnfitError(f"there is no number in {_shown(text)}")
    grouping = "," if sign == "." else "."
    digits = _NOT_IN_NUMBERS.sub("", found[0]).replace(grouping, "").replace("\u2212", "-")
    whole, point, rest = digits.partition(sign)
    fraction = rest.partition(sign)[0]
    return (f"{whole}.{fraction}", _DECIMAL) if point and fraction else (whole, _INTEGER)


def _date(text: str, form: str) -> tuple[str, NamedNode]:
    try:
        read = datetime.strptime(text, form)  # noqa: DTZ007 (a zone is there where the form has %z)
    except ValueError:
        raise UnfitError(f"{_shown(text)} is not a date of the form {form}") from None
    if "%H" in form or "%I" in form:
        return read.isoformat(), _DATE_TIME
    return read.date().isoformat(), _DATE


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…")


MAX_MATCHES = 1000
"""Of one selector, in one place."""
MAX_QUADS = 20_000
MAX_TEXT = 8_000_000
"""Characters of a page that its rules may read, over and over."""
MAX_LINKS = 10_000
MAX_PROBLEMS = 20

_FIRST, _REST, _NIL = (NamedNode(PREFIXES["rdf"] + name) for name in ("first", "rest", "nil"))

_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,7}(?![0-9])", re.ASCII)

Node = NamedNode | BlankNode


class _LimitError(Exception):
    """The error for one of the limits above; the message names it."""


def apply(rule: PageRule, tree: LexborHTMLParser, *, url: str, base: str) -> Iterator[Finding]:
    """Yield what the rule finds on the page: quads, links to follow, and problems."""
    root = tree.root
    if root is None:
        return
    page = _RulePage(url, base)
    try:
        page.read(rule.subject, root, parent=url)
    except _LimitError as limit:
        page.problems.append(Problem(f"{rule.subject.place}: {limit}, the rest was not taken"))
    if page.quads:
        yield Quads(page.quads)
    links = list(dict.fromkeys(page.links(rule, root)))[:MAX_LINKS]
    if links:
        yield Links(links, base)
    yield from page.problems[:MAX_PROBLEMS]


class _RulePage:
    """A page while it is read."""

    def __init__(self, url: str, base: str) -> None:
        self._base = base
        self._room = MAX_TEXT
        parts = urlsplit(url)
        last = parts.path.rstrip("/").rpartition("/")[2]
        self._variables = {"page": url, "host": parts.netloc, "last": last, "n": "1", "parent": url}
        self.quads: list[Quad] = []
        self.problems: list[Problem] = []

    def read(self, rule: SubjectRule, node: LexborNode, parent: str) -> list[Node]:
        """Writes what the rule says; returns the subjects about which there was something to say."""
        places = [node] if rule.each is None else self._matches(rule.each, node)
        found = []
        for number, place in enumerate(places, 1):
            variables = self._variables
            self._variables = variables | {"n": str(number), "parent": parent}
            subject = self._subject(rule, place)
            if subject is not None and self._describe(rule, place, subject):
                found.append(subject)
            self._variables = variables
        return found

    def _subject(self, rule: SubjectRule, place: LexborNode) -> Node | None:
        if rule.subject is None:
            return BlankNode()
        if isinstance(rule.subject, str):
            return self._iri(rule, filled(rule.subject, self._variables))
        found = next(
            (each for each in self._values(rule.subject, place) if isinstance(each, NamedNode)), None
        )
        if found is None:
            self._complain(rule.place, "the subject was not found on the page")
        return found

    def _iri(self, rule: SubjectRule, text: str) -> NamedNode | None:
        node = named_node(resolved(text, self._base))
        if node is None:
            self._complain(rule.place, f"the subject {text[:80]!r} is not an IRI")
        return node

    def _describe(self, rule: SubjectRule, place: LexborNode, subject: Node) -> bool:
        """A subject is written when the page says something about it, or when no rule asks the page."""
        start = len(self.quads)
        for kind in rule.types:
            self._write(subject, RDF_TYPE, kind)
        parent = subject.value if isinstance(subject, NamedNode) else self._variables["parent"]
        says = asks = False
        for predicate, each in rule.properties:
            objects = list(self._objects(each, place, parent))
            for found in objects:
                self._write(subject, predicate, found)
            if isinstance(each, SubjectRule) or each.selector is not None:
                asks, says = True, says or bool(objects)
        if asks and not says:
            del self.quads[start:]
        return says or not asks

    def _objects(
        self, rule: ValueRule | SubjectRule, place: LexborNode, parent: str
    ) -> Sequence[Node | Term]:
        if isinstance(rule, SubjectRule):
            return self.read(rule, place, parent)
        values = list(self._values(rule, place))
        if rule.as_list:
            return [self._list(values)] if values else []
        return list(dict.fromkeys(values))

    def _list(self, members: list[Term]) -> BlankNode:
        nodes = [BlankNode() for _ in members]
        rests: list[Node] = [*nodes[1:], _NIL]
        for node, member, rest in zip(nodes, members, rests, strict=True):
            self._write(node, _FIRST, member)
            self._write(node, _REST, rest)
        return nodes[0]

    def _values(self, rule: ValueRule, place: LexborNode) -> Iterator[Term]:
        if rule.constant is not None:
            yield rule.constant
            return
        prefix = filled(rule.prefix, self._variables)
        for said in self._sources(rule, place):
            for text in texts(rule, said):
                try:
                    value = term(rule, text, prefix, self._base)
                except UnfitError as unfit:
                    self._complain(rule.place, str(unfit))
                    continue
                yield value
                if rule.first:
                    return

    def _sources(self, rule: ValueRule, place: LexborNode) -> Iterator[str]:
        if rule.selector is not None:
            return self._said(rule.selector, place)
        return iter([filled(rule.template or "", self._variables)])

    def _said(self, selector: Selector, place: LexborNode) -> Iterator[str]:
        """The texts or attributes that the selector finds."""
        for node in self._matches(selector.css, place) if selector.css else [place]:
            if selector.attribute is None:
                text: str | None = node.text()
            else:
                text = node.attrs.get(selector.attribute)
            self._room -= len(text or "")
            if self._room < 0:
                raise _LimitError(f"the rules read more than {MAX_TEXT} characters of one page")
            if text is not None:
                yield text

    def _matches(self, css: str, place: LexborNode) -> list[LexborNode]:
        found = place.css(css)
        if len(found) > MAX_MATCHES:
            self._complain(css, f"{len(found)} matches, of which the first {MAX_MATCHES} were taken")
        return found[:MAX_MATCHES]

    def _write(self, subject: Node, predicate: NamedNode, found: Node | Term) -> None:
        if len(self.quads) >= MAX_QUADS:
            raise _LimitError(f"the rules made more than {MAX_QUADS} statements from one page")
        self.quads.append(Quad(subject, predicate, found))

    def _complain(self, place: str, what: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(f"{place}: {what}"))

    def links(self, rule: PageRule, root: LexborNode) -> Iterator[str]:
        """Yield the links to follow."""
        try:
            for selector in rule.follow:
                address = Selector(selector.css, selector.attribute or "href")
                yield from (said.strip() for said in self._said(address, root) if said.strip())
            if rule.paginate is not None:
                yield from self._numbered(rule.paginate, root)
        except _LimitError as limit:
            self._complain(rule.subject.place, str(limit))

    def _numbered(self, pages: Pagination, root: LexborNode) -> Iterator[str]:
        """The addresses of all pages of a list, told on the one that has no number itself."""
        url = self._variables["page"]
        query = urlsplit(url).query
        if any(part.partition("=")[0] == pages.parameter for part in query.split("&")):
            return
        joint = "&" if query else "?"
        bare = url.partition("#")[0].rstrip("?&")
        for number in range(pages.start, min(self._last(pages, root), pages.start + MAX_LINKS) + 1):
            yield f"{bare}{joint}{pages.parameter}={number}"

    def _last(self, pages: Pagination, root: LexborNode) -> int:
        if isinstance(pages.last, int):
            return pages.last
        numbers = (_NUMBER.findall(said) for said in self._said(pages.last, root))
        return max((int(each) for found in numbers for each in found), default=0)
