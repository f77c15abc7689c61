"""JSON-LD into quads: by pyoxigraph, after remote contexts are put in and what is broken is mended.

Comments around it, commas too many, several objects and a lost end are mended and told; objects come with
their places.
"""

import html
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec
from pyoxigraph import BlankNode, Literal, Quad, RdfFormat, parse

from tamias.analyse.chunks import RefusedError
from tamias.analyse.jsonld.contexts import (
    MAX_ADDED,
    MAX_CONTEXT,
    Contexts,
    check_contexts,
    check_growth,
    known,
    with_known_contexts,
)
from tamias.analyse.rdf.recover import Faults, Read, TextPlace
from tamias.analyse.rdf.statements import blank_node, written
from tamias.content.quad_lines import QuadLines
from tamias.model.document import DocumentBudget, LimitExceeded
from tamias.model.finding import Problem
from tamias.settings import AnalyseSettings

MAX_BAD_OBJECTS = 100

_COMMENT = r"//[ \t]{0,9}(?=\n|\Z)|/\*[ \t]{0,9}\*/"
"""What is left of a wrapper where XML has taken `<![CDATA[` away."""
_BEFORE = re.compile(r"(?:(?://|/\*)[ \t]{0,9})?(?:<!\[CDATA\[|<!--)(?:[ \t]{0,9}\*/)?|" + _COMMENT)
_AFTER = re.compile(r"(?:(?:(?://|/\*)[ \t]{0,9})?(?:\]\]>|-->)(?:[ \t]{0,9}\*/)?|;|" + _COMMENT + r")\Z")
_LONGEST_WRAPPER = 40
_EXTRA = re.compile(
    r'"(?:[^"\\]++|\\.)*"|,(?=\s*[\]}])|//[^\n]{0,10000}|/\*(?:[^*]|\*(?!/)){0,10000}\*/', re.DOTALL
)
_BETWEEN = re.compile(r"[\s,;]*")
_CONTEXT = re.compile(r'\{\s*"@context"\s*:\s*')
_GRAPH = re.compile(r'\s*,\s*"@graph"\s*:\s*\[')
_NEXT_OBJECT = re.compile(r"\}\s*+(?:,\s*+)?(?=\{)")
_DECODER = json.JSONDecoder(strict=False)


class Value(NamedTuple):
    """A JSON value and where it begins."""

    value: Any
    place: TextPlace


def values(text: str) -> Iterator[Value | Problem]:
    """The objects of a text, mended where it is clear how; a problem for each thing that is wrong.

    Those of an array, or of a graph under one context, come each as a document of its own.
    """
    text = unwrapped(text)
    try:
        json.loads(text)
    except json.JSONDecodeError as fault:
        yield Problem(f"{fault.msg}; read as far as possible", fault.lineno, fault.colno)
        if "&quot;" in text or "&#34;" in text:
            text = html.unescape(text)
        text = _mended(text) or text
    yield from _one_by_one(text)


def _mended(text: str) -> str | None:
    """The text without commas and comments that do not belong there, if nothing else is wrong with it."""
    text = _without_extra(text)
    try:
        _DECODER.decode(text)
    except (json.JSONDecodeError, RecursionError):
        return None
    return text


def unwrapped(text: str) -> str:
    """Blanks for what stands around the JSON, so that places stay."""
    start, end = len(text) - len(text.lstrip("\ufeff \t\r\n\f\v")), len(text.rstrip())
    if before := _BEFORE.match(text, start):
        start = before.end()
    tail = max(start, end - _LONGEST_WRAPPER)
    if after := _AFTER.search(text[tail:end]):
        end = tail + after.start()
    return _blank(text[:start]) + text[start:end].rstrip()


def _blank(text: str) -> str:
    return re.sub(r"\S", " ", text)


def _without_extra(text: str) -> str:
    """Twice, for a comma may be hidden by the comment after it."""
    return _EXTRA.sub(_without_comma, _EXTRA.sub(_without_comma, text))


def _without_comma(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else _blank(found[0])


def _one_by_one(text: str) -> Iterator[Value | Problem]:
    """Object after object, at the top or in the one array there; after a bad one from the next on."""
    start, wrap = _into_array(text)
    place, seen, bad = TextPlace(), 0, 0
    while bad < MAX_BAD_OBJECTS:
        start = _after(_BETWEEN, text, start)
        if start >= len(text) or text[start] in "]}":
            return
        place, seen = place.after(text[seen:start].encode("utf-8", "replace")), start
        try:
            value, start = _DECODER.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError) as fault:
            bad += 1
            following = _NEXT_OBJECT.search(text, start + 1)
            end = following.end() if following else len(text)
            start, slip = end, text[start:end]
            try:
                value, _ = _DECODER.raw_decode(_without_extra(slip))
            except (json.JSONDecodeError, RecursionError):
                yield Problem(f"object left out: {getattr(fault, 'msg', 'nested too deep')}", *place)
                continue
        yield Value({**wrap, "@graph": [value]} if wrap else value, place)


def _into_array(text: str) -> tuple[int, dict[str, Any]]:
    """Return where the first object of the array begins, and the context of all objects."""
    start = _after(_BETWEEN, text, 0)
    if text.startswith("[", start):
        return start + 1, {}
    head = _CONTEXT.match(text, start)
    if head is not None:
        try:
            context, end = _DECODER.raw_decode(text, head.end())
        except (json.JSONDecodeError, RecursionError):
            return start, {}
        items = _GRAPH.match(text, end)
        if items is not None and _ends_with_graph(text, start):
            return items.end(), {"@context": context}
    return start, {}


def _ends_with_graph(text: str, start: int) -> bool:
    """Return whether only the graph follows the context: another key could give the graph a name."""
    try:
        value, _ = _DECODER.raw_decode(text, start)
    except (json.JSONDecodeError, RecursionError):
        return True
    return set(value) == {"@context", "@graph"}


def _after(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start


MAX_CONTEXTS = 100
MAX_TERMS = 250_000
"""Terms that contexts define while a document is expanded: some two seconds."""


class Unexpandable(Exception):
    """A document cannot be expanded; the message says why."""


class MissingContexts(Exception):
    """Contexts that are not at hand; the document cannot be read without them."""

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses


def expanded(document: Any, base: str | None, contexts: Contexts | None, budget: DocumentBudget) -> bytes:
    """The document in expanded form.

    Raises `MissingContexts`, `Unexpandable` or `RefusedError`, and as `DocumentBudget.check` does.
    """
    from pyld.context_resolver import ContextResolver
    from pyld.jsonld import JsonLdError

    loader = _ContextLoader(contexts)
    options = {"base": base or "", "documentLoader": loader, "contextResolver": ContextResolver({}, loader)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = _processor(budget).expand(document, options)
    except (RefusedError, LimitExceeded):
        raise
    except Exception as fault:  # PyLD meets what it did not expect with any exception there is
        if loader.missing:
            raise MissingContexts(loader.missing) from fault
        is_plain = isinstance(fault, JsonLdError) and fault.args
        raise Unexpandable(str(fault.args[0]) if is_plain else f"{type(fault).__name__}: {fault}") from fault
    if loader.missing:
        raise MissingContexts(loader.missing)
    return json.dumps(result, allow_nan=False).encode("utf-8", "replace")


class _ContextLoader:
    """Gives PyLD the contexts that are at hand, and notes those that are not."""

    def __init__(self, contexts: Contexts | None) -> None:
        self._contexts = contexts
        self._loaded = 0
        self.missing: list[str] = []

    def __call__(self, url: str, options: object = None) -> dict[str, Any]:
        self._loaded += 1
        if self._loaded > MAX_CONTEXTS:
            raise RefusedError(f"more than {MAX_CONTEXTS} remote JSON-LD contexts, document not read")
        return {
            "contentType": "application/ld+json",
            "contextUrl": None,
            "documentUrl": url,
            "document": self._document(url),
        }

    def _document(self, url: str) -> Any:
        local = known(url)
        if local is not None:
            return {"@context": local.context()}
        data = self._contexts(url) if self._contexts else None
        if data is None:
            self.missing.append(url)
            return {"@context": {}}
        if len(data) > MAX_CONTEXT:
            raise RefusedError(f"JSON-LD context {url} of more than {MAX_CONTEXT} bytes, document not read")
        return json.loads(data)


def _processor(budget: DocumentBudget) -> Any:
    """PyLD's processor, with an end to its work."""
    from pyld.jsonld import JsonLdProcessor

    class Bounded(JsonLdProcessor):  # type: ignore[misc]
        left = MAX_TERMS
        size = 0

        def _process_context(self, *arguments: Any, **options: Any) -> Any:
            context = super()._process_context(*arguments, **options)
            self.left -= 1 + len(context["mappings"])
            if self.left < 0:
                raise RefusedError(
                    f"JSON-LD contexts ask for more than {MAX_TERMS} definitions, document not read"
                )
            budget.check()
            return context

        def _expand_iri(self, *arguments: Any, **options: Any) -> Any:
            iri = super()._expand_iri(*arguments, **options)
            self.size += len(iri or "")
            budget.check(self.size)
            return iri

    return Bounded()


_Term = TypeVar("_Term")
_NO_LOADER = "LoadDocumentCallback"
_DIFFICULT = re.compile(
    rb'"@base"\s*:\s*"[^"]*/\.{1,2}/'  # dot segments of a base are not removed
    rb'|"//[^"]*/\.{1,2}/'  # nor those of a reference that begins with its authority
    rb'|"@container"\s*:\s*\[?\s*"@type"'  # a type that is a key has its scoped context passed over
    rb'|"[^":@/]+/[^":]*"\s*:\s*\{'  # a term with a slash is not resolved against `@vocab`
)
"""What pyoxigraph 0.5 gets wrong."""
_UNUSUAL_LABEL = re.compile(rb"_:[^ ]*?:")
_MARKS = (b'"@base"', b'"//', b'"@container"', b'"@vocab"')
_TOO_OFTEN = "one context for too many objects to read them one by one, the rest was not read"


class JsonLd:
    """Reads JSON-LD documents, alone or in pages."""

    def __init__(self, limits: AnalyseSettings | None = None, contexts: Contexts | None = None) -> None:
        self._limits = limits or AnalyseSettings()
        self._contexts = contexts

    def found(self, data: bytes, base: str | None, faults: Faults) -> Iterator[Read]:
        """The quads of a document whose depth has been checked; what is broken or missing is a problem."""
        if not data.strip():
            return
        try:
            check_contexts(data, faults.budget)
            found = self._read(data, base, faults.budget)
        except MissingContexts as missing:
            is_array = data.lstrip().startswith(b"[")
            yield from self._one_by_one(data, base, faults) if is_array else _wanted(missing)
        except RefusedError as refusal:
            yield from faults.report(str(refusal))
        except (SyntaxError, Unexpandable) as fault:
            before = faults.count
            yield from self._one_by_one(data, base, faults)
            if faults.count == before:
                yield from faults.report(_message(fault))
        else:
            yield from found

    def _read(
        self, data: bytes, base: str | None, budget: DocumentBudget
    ) -> list[QuadLines] | list[list[Quad]]:
        """Read all or nothing: a lenient parser changes results."""
        source = with_known_contexts(data, budget)
        if (any(mark in source for mark in _MARKS) and _DIFFICULT.search(source)) or _drops_types(source):
            source = self._expanded(source, base, budget)
        try:
            found = _lines(source, base, budget)
        except SyntaxError as fault:
            if _NO_LOADER not in fault.msg:
                raise
            source, base = self._expanded(source, base, budget), None
            found = _lines(source, base, budget)
        if any(_UNUSUAL_LABEL.search(lines.nquads) for lines in found) or b"@direction" in data:
            return [[_sayable(quad) for quad in parse(source, format=RdfFormat.JSON_LD, base_iri=base)]]
        return found

    def _expanded(self, source: bytes, base: str | None, budget: DocumentBudget) -> bytes:
        try:
            document = msgspec.json.decode(source)
        except (msgspec.DecodeError, RecursionError) as fault:
            raise Unexpandable(str(fault)) from fault
        return expanded(document, base, self._contexts, budget)

    def _one_by_one(self, data: bytes, base: str | None, faults: Faults) -> Iterator[Read]:
        """Mends the text and reads its objects, each for itself."""
        left, wanted = MAX_ADDED + len(data), set()
        for value in values(data.decode("utf-8", "replace")):
            if isinstance(value, Problem):
                yield from faults.report(value.what, TextPlace(value.line or 1, value.column or 1))
                continue
            source = msgspec.json.encode(value.value)
            left -= len(source)
            for found in self._of_object(source, base, value.place, faults):
                if not isinstance(found, Problem) or found.wants is None or found.wants not in wanted:
                    yield found
                if isinstance(found, Problem):
                    wanted.add(found.wants)
            if left < 0:
                yield from faults.report(_TOO_OFTEN, value.place)
            if faults.given_up or left < 0:
                return

    def _of_object(self, source: bytes, base: str | None, place: TextPlace, faults: Faults) -> Iterator[Read]:
        try:
            found = self._read(source, base, faults.budget)
        except MissingContexts as missing:
            yield from _wanted(missing)
        except (SyntaxError, Unexpandable, RefusedError) as fault:
            yield from faults.report(_message(fault), place)
        else:
            faults.good += sum(map(len, found))
            yield from found


def _defined_terms(document: Any) -> set[str]:
    contexts = _contexts(document)
    return {name for each in contexts for name, meaning in each.items() if meaning is not None}


def _drops_types(source: bytes) -> bool:
    """Return whether a node with a type stands under a key that no context defines.

    Such a key is left out with all that stands under it, but pyoxigraph 0.5 still says the nodes' types.
    """
    if b'"@vocab"' in source or source.count(b'"@type"') < 2:
        return False
    try:
        document = msgspec.json.decode(source)
    except (msgspec.DecodeError, RecursionError):
        return False
    terms = _defined_terms(document)
    waiting: list[tuple[Any, bool]] = [(document, False)]
    while waiting:
        value, is_dropped = waiting.pop()
        if isinstance(value, list):
            waiting += [(each, is_dropped) for each in value]
        elif isinstance(value, dict):
            if is_dropped and "@type" in value:
                return True
            for key, each in value.items():
                is_term = not key.startswith("@") and ":" not in key
                waiting.append((each, is_dropped or (is_term and key not in terms)))
    return False


def _contexts(document: Any) -> Iterator[dict[str, Any]]:
    """Yield all contexts in a document, also those in the terms of others."""
    waiting: list[tuple[Any, bool]] = [(document, False)]
    while waiting:
        value, is_context = waiting.pop()
        if isinstance(value, list):
            waiting += [(each, is_context) for each in value]
        elif isinstance(value, dict):
            if is_context:
                yield value
            waiting += [(each, key == "@context") for key, each in value.items()]


def _message(fault: SyntaxError | Unexpandable | RefusedError) -> str:
    return fault.msg if isinstance(fault, SyntaxError) else str(fault)


def _wanted(missing: MissingContexts) -> Iterator[Problem]:
    for address in dict.fromkeys(missing.addresses):
        what = f"remote JSON-LD context {address} is not at hand, document not read"
        yield Problem(what, wants=address)


def _lines(source: bytes, base: str | None, budget: DocumentBudget) -> list[QuadLines]:
    check_growth(source, budget)
    return written(parse(source, format=RdfFormat.JSON_LD, base_iri=base), budget, has_graphs=True)


def _sayable(quad: Quad) -> Quad:
    subject, predicate, value, graph = quad
    return Quad(_labelled(subject), predicate, _labelled(_without_direction(value)), _labelled(graph))


def _labelled(term: _Term) -> _Term | BlankNode:
    return blank_node(term.value) if isinstance(term, BlankNode) else term


def _without_direction(term: _Term) -> _Term | Literal:
    """JSON-LD 1.1 leaves the direction of a text out of RDF, which had no place for it."""
    if not isinstance(term, Literal) or term.direction is None:
        return term
    return Literal(term.value, language=term.language)
