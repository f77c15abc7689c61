"""RDFa 1.0 and 1.1 in HTML, XHTML, SVG and other XML: the processing sequence of RDFa Core.

Only elements with RDFa attributes are visited, and what is around them. `role` is left out: it tells
programs for the disabled what a part of a page does, and says nothing about the world.
"""

import re
from collections.abc import Iterator
from html import escape

import msgspec
from lxml import etree, html
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from tamias.analyse.markup.page import MarkupPage
from tamias.features.markup.rdfa.names import RDF, RDFA, HostLanguage, Language, Names, Scope, host_of
from tamias.features.markup.statements import MarkupStatements, Node, Term, TooMuchError, date_type
from tamias.model.finding import Finding

_TYPE = NamedNode(RDF + "type")
_COPY = NamedNode(RDFA + "copy")
_PATTERN = NamedNode(RDFA + "Pattern")

Subjects = set[NamedNode | BlankNode | Triple]


def copy_patterns(statements: MarkupStatements) -> None:
    """Copies, over and over while patterns copy others, and takes the patterns that were used away."""
    quads = statements.quads()
    patterns = {quad.subject for quad in quads if quad.predicate == _TYPE and quad.object == _PATTERN}
    copied: dict[Quad, None] = {}
    while pending := [
        quad for quad in quads if quad.predicate == _COPY and quad.object in patterns and quad not in copied
    ]:
        _add_copies(statements, pending, _by_subject(quads, patterns))
        copied.update(dict.fromkeys(pending))
        quads = statements.quads()
    used = {copy.object for copy in copied}
    statements.remove(quad for quad in quads if quad in copied or quad.subject in used)


def _add_copies(statements: MarkupStatements, copies: list[Quad], patterns: dict[object, list[Quad]]) -> None:
    for copy in copies:
        for quad in patterns[copy.object]:
            if quad.object != _PATTERN:
                statements.add(copy.subject, quad.predicate, quad.object)


def _by_subject(quads: list[Quad], patterns: Subjects) -> dict[object, list[Quad]]:
    said: dict[object, list[Quad]] = {pattern: [] for pattern in patterns}
    for quad in quads:
        if quad.subject in said:
            said[quad.subject].append(quad)
    return said


_FIRST = NamedNode(RDF + "first")
_REST = NamedNode(RDF + "rest")
_NIL = NamedNode(RDF + "nil")
_USES_VOCABULARY = NamedNode(RDFA + "usesVocabulary")

_MEMBER = 64
"""What one more member of a list costs before it is written."""
_ATTRIBUTES = frozenset({"property", "typeof", "rel", "rev", "vocab", "about", "resource"})
_ADDRESSES = frozenset({"href", "src"})
_MARKS = (_ATTRIBUTES | _ADDRESSES) - {"vocab"}


def extract(page: MarkupPage) -> Iterator[Finding]:
    """The statements of the page."""
    statements = MarkupStatements(page, "RDFa")
    with statements.bounded():
        _Walk(page, statements).walk()
        copy_patterns(statements)
    yield from statements.findings()


class _Lists:
    """The lists that are being made for one subject."""

    def __init__(self, subject: Node) -> None:
        self.subject = subject
        self.of: dict[NamedNode, list[Term]] = {}


class _Incomplete(msgspec.Struct, frozen=True):
    """A relation whose other end has not been seen yet: a statement, one the other way, or a list."""

    predicate: NamedNode
    is_reverse: bool = False
    members: list[Term] | None = None


class _Context(msgspec.Struct, frozen=True):
    """The evaluation context that an element inherits."""

    scope: Scope
    parent_subject: Node
    parent_object: Node
    lists: _Lists
    incomplete: tuple[_Incomplete, ...] = ()


class _Parts(msgspec.Struct):
    """The parts that resources play at one element."""

    subject: Node
    current: Node | None = None
    """The object of the element's relations, and what its content is about."""
    typed: Node | None = None
    is_skipped: bool = False


class _Marked:
    """The attributes of an element, with resources as nodes."""

    def __init__(self, element: etree._Element, scope: Scope, host: HostLanguage, names: Names) -> None:
        get = element.get
        self.element = element
        self.property = get("property")
        self.has_type = get("typeof") is not None
        self.is_literal = get("content") is not None or get("datatype") is not None
        self.in_list = not host.is_old and get("inlist") is not None
        self.rel = self._relations("rel", host)
        self.rev = self._relations("rev", host)
        self.is_related = self.rel is not None or self.rev is not None
        self.about = names.resource(get("about"), scope)
        self.resource = names.resource(get("resource"), scope)
        self.href = names.address(get("href"), scope)
        self.src = names.address(get("src"), scope)

    @property
    def target(self) -> Node | None:
        """Return the object that the element points at, in RDFa 1.1."""
        return self.resource or self.href or self.src

    def _relations(self, attribute: str, host: HostLanguage) -> str | None:
        """Return a relation attribute; in HTML `rel` has only its CURIEs and IRIs beside a `property`."""
        value = self.element.get(attribute)
        if value is None or host.language is not Language.HTML or host.is_old or self.property is None:
            return value
        return " ".join(word for word in value.split() if ":" in word) or None


class _Walk:
    """Goes through one document."""

    def __init__(self, page: MarkupPage, statements: MarkupStatements) -> None:
        self._page = page
        self._root = page.tree
        self._host = host_of(page)
        self._statements = statements
        self._names = Names(self._host, statements, page)
        self._values = Values(self._host, self._names, statements)
        self._scope = self._names.outermost()
        self._base: Node = statements.node(self._scope.base) or BlankNode()

    def walk(self) -> None:
        inner = _outline(self._page)
        lists = _Lists(self._base)
        outermost = _Context(self._scope, self._base, self._base, lists)
        waiting: list[tuple[etree._Element, _Context] | _Lists] = [lists, (self._root, outermost)]
        while waiting:
            step = waiting.pop()
            if isinstance(step, _Lists):
                self._write_lists(step)
                continue
            element, context = step
            inside, begun = self._visit(element, context)
            waiting.extend(begun)
            waiting.extend((child, inside) for child in reversed(inner[element]))

    def _visit(self, element: etree._Element, context: _Context) -> tuple[_Context, list[_Lists]]:
        """The context of the element's children, and the lists to be written after them."""
        scope = self._names.inside(element, context.scope)
        if scope.vocabulary is not None and scope.vocabulary != context.scope.vocabulary:
            self._use_vocabulary(scope.vocabulary)
        if _MARKS.isdisjoint(element.attrib):
            return (context if scope is context.scope else msgspec.structs.replace(context, scope=scope)), []
        marked = _Marked(element, scope, self._host, self._names)
        parts = self._old_parts(marked, context) if self._host.is_old else self._parts(marked, context)
        self._state_types(marked, scope, parts)
        lists = context.lists if parts.subject == context.parent_object else _Lists(parts.subject)
        incomplete = self._relate(marked, scope, parts, lists)
        if marked.property is not None:
            self._state_properties(marked, scope, parts, lists)
        if parts.is_skipped:
            return msgspec.structs.replace(context, scope=scope), []
        self._complete(context, parts.subject)
        about = parts.current or parts.subject
        inner_lists = lists if about == parts.subject else _Lists(about)
        begun = [each for each in dict.fromkeys((lists, inner_lists)) if each is not context.lists]
        return _Context(scope, parts.subject, about, inner_lists, incomplete), begun

    def _parts(self, marked: _Marked, context: _Context) -> _Parts:
        if marked.is_related:
            return self._related_parts(marked, context.parent_object)
        if marked.property is not None and not marked.is_literal:
            return self._chaining_parts(marked, context.parent_object)
        subject = marked.about or marked.target
        if subject is None and marked.has_type:
            subject = context.parent_object if self._keeps_subject(marked.element) else BlankNode()
        is_skipped = subject is None and marked.property is None
        typed = subject if marked.has_type else None
        return _Parts(subject or context.parent_object, typed=typed, is_skipped=is_skipped)

    def _related_parts(self, marked: _Marked, outer: Node) -> _Parts:
        current = marked.target
        if current is None and marked.has_type and marked.about is None:
            current = BlankNode()
        typed = (marked.about or current) if marked.has_type else None
        return _Parts(marked.about or outer, current, typed)

    def _chaining_parts(self, marked: _Marked, outer: Node) -> _Parts:
        """Return the parts of a `property` whose value may be a resource that its content is about."""
        subject = marked.about or outer
        if not marked.has_type:
            return _Parts(subject)
        if marked.about is not None or (marked.target is None and self._keeps_subject(marked.element)):
            return _Parts(subject, typed=subject)
        typed = marked.target or BlankNode()
        return _Parts(subject, typed, typed)

    def _old_parts(self, marked: _Marked, context: _Context) -> _Parts:
        subject = marked.about or marked.src
        if not marked.is_related:
            subject = subject or marked.resource or marked.href
        if subject is None and self._keeps_subject(marked.element):
            subject = self._base
        is_skipped = subject is None and not (marked.has_type or marked.is_related or marked.property)
        if subject is None:
            subject = BlankNode() if marked.has_type else context.parent_object
        current = (marked.resource or marked.href) if marked.is_related else None
        return _Parts(subject, current, subject if marked.has_type else None, is_skipped)

    def _keeps_subject(self, element: etree._Element) -> bool:
        """Return whether a type on the element is that of the document, rather than of a new node."""
        if element is self._root:
            return True
        return self._host.has_head and str(element.tag).rpartition("}")[2] in ("head", "body")

    def _use_vocabulary(self, vocabulary: str) -> None:
        node = self._statements.node(vocabulary)
        if node is not None:
            self._statements.add(self._base, _USES_VOCABULARY, node)

    def _state_types(self, marked: _Marked, scope: Scope, parts: _Parts) -> None:
        if parts.typed is not None:
            for kind in self._names.types(marked.element.get("typeof") or "", scope):
                self._statements.add(parts.typed, _TYPE, kind)

    def _relate(self, marked: _Marked, scope: Scope, parts: _Parts, lists: _Lists) -> tuple[_Incomplete, ...]:
        """States the element's relations, or returns them where their object is still to come."""
        if not marked.is_related:
            return ()
        forward = self._names.predicates(marked.rel or "", scope, is_relation=True)
        backward = self._names.predicates(marked.rev or "", scope, is_relation=True)
        if parts.current is None:
            if forward or backward:
                parts.current = BlankNode()
            return _incomplete(forward, backward, lists if marked.in_list else None)
        for predicate in forward:
            self._state(parts.subject, predicate, parts.current, lists if marked.in_list else None)
        for predicate in backward:
            self._statements.add(parts.current, predicate, parts.subject)
        return ()

    def _state_properties(self, marked: _Marked, scope: Scope, parts: _Parts, lists: _Lists) -> None:
        predicates = self._names.predicates(marked.property or "", scope)
        if not predicates:
            return
        value: Term | None = self._values.stated(marked.element, scope)
        if value is None and not self._host.is_old:
            value = marked.target if not marked.is_related else None
            # An `about` that names nothing still keeps the type away from the value.
            value = value or (parts.typed if marked.element.get("about") is None else None)
        value = value or self._values.content(marked.element, scope)
        for predicate in predicates:
            self._state(parts.subject, predicate, value, lists if marked.in_list else None)

    def _state(self, subject: Node, predicate: NamedNode, value: Term, lists: _Lists | None) -> None:
        if lists is None:
            self._statements.add(subject, predicate, value)
        else:
            lists.of.setdefault(predicate, []).append(value)

    def _complete(self, context: _Context, subject: Node) -> None:
        for relation in context.incomplete:
            if relation.members is not None:
                self._statements.spend(_MEMBER)
                relation.members.append(subject)
            elif relation.is_reverse:
                self._statements.add(subject, relation.predicate, context.parent_subject)
            else:
                self._statements.add(context.parent_subject, relation.predicate, subject)

    def _write_lists(self, lists: _Lists) -> None:
        for predicate, members in lists.of.items():
            rest: Node = _NIL
            cells = [BlankNode() for _ in members]
            self._statements.add(lists.subject, predicate, cells[0] if cells else _NIL)
            for cell, member in zip(reversed(cells), reversed(members), strict=True):
                self._statements.add(cell, _FIRST, member)
                self._statements.add(cell, _REST, rest)
                rest = cell


def _incomplete(
    forward: list[NamedNode], backward: list[NamedNode], lists: _Lists | None
) -> tuple[_Incomplete, ...]:
    if lists is None:
        found = [_Incomplete(predicate) for predicate in forward]
    else:
        found = [_Incomplete(each, members=lists.of.setdefault(each, [])) for each in forward]
    return (*found, *(_Incomplete(predicate, is_reverse=True) for predicate in backward))


def _outline(page: MarkupPage) -> dict[etree._Element, list[etree._Element]]:
    """The tree of what is to be visited: elements of ours and those around them, in document order."""
    inner: dict[etree._Element, list[etree._Element]] = {page.tree: []}
    hanging = {element for element, names in page.telling if _is_hanging(names)}
    for element, names in page.marked if hanging else page.telling:
        if element not in inner and (
            not _ATTRIBUTES.isdisjoint(names) or (hanging and _may_complete(element, names, hanging))
        ):
            inner[element] = []
            _attach(element, inner)
    return inner


def _is_hanging(names: list[str]) -> bool:
    """Return whether the element has relations without an object."""
    return ("rel" in names or "rev" in names) and _ADDRESSES.isdisjoint(names) and "resource" not in names


def _may_complete(element: etree._Element, names: list[str], hanging: set[etree._Element]) -> bool:
    """Below a relation without an object, any address becomes one."""
    return not _ADDRESSES.isdisjoint(names) and not hanging.isdisjoint(element.iterancestors())


def _attach(element: etree._Element, inner: dict[etree._Element, list[etree._Element]]) -> None:
    parent = element.getparent()
    while parent is not None:
        is_attached = parent in inner
        inner.setdefault(parent, []).append(element)
        if is_attached:
            return
        element, parent = parent, parent.getparent()


_XML_LITERAL = NamedNode(RDF + "XMLLiteral")
_HTML_LITERAL = NamedNode(RDF + "HTML")
_XHTML = "http://www.w3.org/1999/xhtml"
_START = re.compile(r"<[^\s/>]+")
_MOST_NAMESPACES = 1 << 16
_TEXT = etree.XPath("string()", smart_strings=False)


def text_of(element: etree._Element) -> str:
    """Return the text in an element, without comments."""
    return str(_TEXT(element))


class Values:
    """Makes the literals of one document."""

    def __init__(self, host: HostLanguage, names: Names, statements: MarkupStatements) -> None:
        self._host = host
        self._names = names
        self._statements = statements

    def stated(self, element: etree._Element, scope: Scope) -> Literal | None:
        """The literal that attributes ask for, and no address may replace; None where they ask for none."""
        content, declared = element.get("content"), element.get("datatype")
        if declared is not None:
            return self._typed(element, scope, content, declared.strip())
        if content is not None:
            return self._statements.literal(content, language=scope.language)
        if self._host.language is Language.HTML and not self._host.is_old:
            return self._time(element, scope)
        return None

    def content(self, element: etree._Element, scope: Scope) -> Literal:
        """The literal of an element's own content."""
        if self._host.is_old and any(isinstance(child.tag, str) for child in element):
            return self._statements.literal(_inner_xml(element, self._spaces(scope)), datatype=_XML_LITERAL)
        return self._statements.literal(text_of(element), language=scope.language)

    def _typed(self, element: etree._Element, scope: Scope, content: str | None, declared: str) -> Literal:
        datatype = self._names.name(declared, scope, has_terms=True) if declared else None
        if content is None and datatype == _XML_LITERAL:
            return self._statements.literal(_inner_xml(element, self._spaces(scope)), datatype=_XML_LITERAL)
        if content is None and datatype == _HTML_LITERAL:
            return self._statements.literal(_inner_html(element), datatype=_HTML_LITERAL)
        text = self._value(element) if content is None else content
        if isinstance(datatype, NamedNode):
            return self._statements.literal(text, datatype=datatype)
        return self._statements.literal(text, language=scope.language)

    def _spaces(self, scope: Scope) -> dict[str, str]:
        declared = {f"xmlns:{prefix}": space for prefix, space in sorted(scope.prefixes.items())}
        return {**declared, "xmlns": _XHTML} if self._host.has_head else declared

    def _value(self, element: etree._Element) -> str:
        declared = element.get("datetime") if self._host.language is Language.HTML else None
        return text_of(element) if declared is None else declared

    def _time(self, element: etree._Element, scope: Scope) -> Literal | None:
        declared = element.get("datetime")
        if declared is None:
            if str(element.tag).rpartition("}")[2] != "time":
                return None
            declared = text_of(element)
        datatype = date_type(declared)
        return self._statements.literal(declared, language=scope.language, datatype=datatype)


def _inner_xml(element: etree._Element, spaces: dict[str, str]) -> str:
    """The content, each element with the namespaces that are declared around it, for CURIEs in it too."""
    # Not in canonical form: lxml 6.1 ends the process over a comment in that.
    if len(element) * sum(map(len, spaces.values())) > _MOST_NAMESPACES:
        raise TooMuchError
    parts = [escape(element.text or "", quote=False)]
    parts.extend(_declaring(child, spaces) for child in element)
    return "".join(parts)


def _declaring(child: etree._Element, spaces: dict[str, str]) -> str:
    """A node as XML with declarations that lxml, which reads HTML without namespaces, knows nothing of."""
    text = etree.tostring(child, encoding="unicode")
    if not isinstance(child.tag, str):
        return text
    known = {f"xmlns:{prefix}" for prefix in child.nsmap} | ({"xmlns"} if "}" in child.tag else set())
    added = "".join(f' {name}="{escape(space)}"' for name, space in spaces.items() if name not in known)
    end = _START.match(text).end()  # type: ignore[union-attr]
    return text[:end] + added + text[end:]


def _inner_html(element: etree._Element) -> str:
    parts = (html.tostring(child, encoding="unicode") for child in element)
    return escape(element.text or "", quote=False) + "".join(parts)
