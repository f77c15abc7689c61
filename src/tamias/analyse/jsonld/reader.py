"""JSON-LD into quads: by pyoxigraph, after remote contexts are put in and what is broken is mended."""

import json
import re
import warnings
from collections.abc import Iterator
from typing import Any, TypeVar

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
from tamias.analyse.jsonld.text import values
from tamias.analyse.rdf.recover import Faults, Read, TextPlace
from tamias.analyse.rdf.statements import blank_node, written
from tamias.content.quad_lines import QuadLines
from tamias.model.document import DocumentBudget, LimitExceeded
from tamias.model.finding import Problem
from tamias.settings import AnalyseSettings

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
