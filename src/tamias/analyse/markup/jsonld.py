"""JSON-LD in the scripts of pages, with the breakage that is usual there."""

from collections.abc import Iterator

import msgspec
from lxml import etree

from tamias.analyse.chunks import RefusedError
from tamias.analyse.jsonld.reader import JsonLd, unwrapped
from tamias.analyse.markup.page import MarkupPage
from tamias.analyse.rdf.recover import Faults, Read, batched
from tamias.analyse.rdf.statements import JSON, Nesting
from tamias.content.formats import JSON_LD
from tamias.model.finding import Finding, Problem
from tamias.settings import AnalyseSettings

_SCRIPTS = ("script", "{http://www.w3.org/1999/xhtml}script")
_DEFAULTS = AnalyseSettings()


def extract(page: MarkupPage, limits: AnalyseSettings = _DEFAULTS) -> Iterator[Finding]:
    """The statements of all scripts. A label of a blank node means the same in all of them."""
    faults = Faults(limits.max_errors, page.budget)
    yield from batched(_of_scripts(page, JsonLd(limits, page.contexts), limits, faults))
    yield from faults.summary()


def _of_scripts(page: MarkupPage, reader: JsonLd, limits: AnalyseSettings, faults: Faults) -> Iterator[Read]:
    for script in page.tree.iter(*_SCRIPTS):
        if (script.get("type") or "").partition(";")[0].strip().lower() != JSON_LD:
            continue
        text = _content(script)
        line = page.line_of(text)
        data = unwrapped(text).encode("utf-8", "replace")
        try:
            for _ in Nesting(JSON, limits).watched([data]):
                pass
        except RefusedError as refusal:
            yield Problem(str(refusal), line)
            continue
        for found in reader.found(data, page.base, faults):
            yield _in_page(found, line) if isinstance(found, Problem) else found


def _content(script: etree._Element) -> str:
    """Return the text of a script with its comments: in XML they hide what HTML keeps."""
    texts = [script.text or ""]
    for child in script:
        texts += [child.text or "", child.tail or ""]
    return "".join(texts)


def _in_page(problem: Problem, line: int | None) -> Problem:
    """Return a problem with its place in the page; columns of the first line are not known."""
    if line is None or problem.line is None:
        return msgspec.structs.replace(problem, line=line, column=None)
    column = problem.column if problem.line > 1 else None
    return msgspec.structs.replace(problem, line=line + problem.line - 1, column=column)
