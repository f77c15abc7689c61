"""JSON-LD with remote contexts, by PyLD: expanded, so that nothing remote is left in it."""

import json
import warnings
from typing import Any

from tamias.analyse.chunks import RefusedError
from tamias.analyse.jsonld.contexts import MAX_CONTEXT, Contexts, known
from tamias.model.document import DocumentBudget, LimitExceeded

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
