"""Harvester for a portal of unknown software: finds it out in a few requests, and hands the portal over."""

import re
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec
from pyoxigraph import NamedNode

from tamias.features.dcat.datasets.mapping import BAD
from tamias.features.dcat.datasets.records import failure
from tamias.features.portals.paging.ways import roots
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.finding import Harvest, HarvestEnd, HarvestStep, Links, Quads
from tamias.model.url import fetch_url
from tamias.model.vocabulary import RDF_TYPE, SPACES
from tamias.protocols import PoliteClient

MOST_REQUESTS = 6
_MOST_BYTES = 1 << 20
_INNER = (
    "api",
    "dataset",
    "datasets",
    "explore",
    "organization",
    "group",
    "browse",
    "data.json",
    "dataverse",
)


class _Sign(NamedTuple):
    """Signs of a software: the generator's name, other words of its pages, its API."""

    kind: str
    generator: re.Pattern[str]
    words: re.Pattern[str]
    path: str
    keys: tuple[str, ...]
    """All of them stand in what the API answers."""


def _sign(kind: str, generator: str, words: str, path: str, *keys: str) -> _Sign:
    return _Sign(kind, re.compile(generator, re.IGNORECASE), re.compile(words, re.IGNORECASE), path, keys)


_SIGNS: Final = (
    _sign("ckan", r"^ckan\b", r"ckan|/api/3\b", "api/3/action/status_show", "success", "result"),
    _sign(
        "opendatasoft", r"^opendatasoft", r"opendatasoft|ods-front|odswidgets",
        "api/explore/v2.1/catalog/datasets?limit=1", "total_count", "results",
    ),
    _sign("socrata", r"^socrata", r"socrata|tylertech", "api/catalog/v1?limit=1", "results", "resultSetSize"),
    _sign("udata", r"^udata", r"\budata\b", "api/1/datasets/?page_size=1", "data", "page_size", "total"),
    _sign(
        "arcgis", r"^arcgis", r"hub\.arcgis\.com|arcgis[- ]hub|opendata-ui",
        "api/search/v1/collections", "collections",
    ),
    _sign("dkan", r"\bdkan\b", r"\bdkan\b|/api/1/metastore", "api/1/metastore/schemas", "dataset"),
    _sign("dataverse", r"^dataverse", r"dataverse", "api/info/version", "status", "data"),
    _sign("zenodo", r"^(?:invenio|zenodo)", r"invenio|zenodo", "api/records?size=1", "hits"),
)  # fmt: skip
_GENERATOR: Final = re.compile(
    r"<meta\s[^>]*name\s*=\s*[\"']generator[\"'][^>]*content\s*=\s*[\"']([^\"'>]{1,200})", re.IGNORECASE
)

_PAGE: Final = re.compile(rb"<!doctype html|<html", re.IGNORECASE)
_DOCUMENTS: Final = (
    ("stac", re.compile(rb'"stac_version"\s*:')),
    ("data-json", re.compile(rb'^\s*\{.*"dataset"\s*:\s*\[', re.DOTALL)),
    ("oai-pmh", re.compile(rb"<(?:\w+:)?OAI-PMH[\s>]")),
    ("csw", re.compile(rb"<(?:\w+:)?Capabilities[^>]*/cat/csw")),
)
"""Marks of catalogues that are documents themselves."""
_CATALOGUES: Final = frozenset(
    (RDF_TYPE, NamedNode(SPACES["dcat"] + name)) for name in ("Catalog", "Dataset")
)
_MOST_QUADS = 100_000


class PortalHarvester:
    """Requests the address and the front page, then likely APIs; six requests at the most."""

    kinds = frozenset({"portal"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        yield await _find(harvest.url, client)


async def _find(address: str, client: PoliteClient) -> HarvestStep:
    """Return the step that hands a portal over, or says why none was found."""
    root, tried, page = roots(address, *_INNER)[0], list[str](), ""
    for url in dict.fromkeys((fetch_url(address), root)):
        capture = await client.ask(Request(url=url, accept="text/html, */*;q=0.5"))
        tried.append(_said(capture))
        if capture.retry:
            return HarvestStep(state=b"", end=failure(capture, "the portal at"))
        body = client.body(capture, _MOST_BYTES)
        if kind := _kind_of_document(client, capture, body):
            return _handed_over(kind, url, f"{url} is one", tried)
        page += body.decode("utf-8", "replace")
        if maker := _maker(page):
            return _handed_over(maker[0], root, f"the page says it is made by {maker[1]!r}", tried)
    likeliest = sorted(_SIGNS, key=lambda sign: -min(100, len(sign.words.findall(page))))
    for sign in likeliest[: MOST_REQUESTS - len(tried)]:
        capture = await client.ask(Request(url=root + sign.path, accept="application/json"))
        tried.append(_said(capture))
        if _is_answer(client.body(capture, _MOST_BYTES), sign):
            return _handed_over(sign.kind, root, f"{capture.url} answers as it does", tried)
    reason = (
        f"no known portal software at {address}; if it is a catalogue of another kind, name that, "
        f"such as dcat:URL; tried: {', '.join(tried)}"
    )
    return HarvestStep(state=b"", end=HarvestEnd(outcome=Outcome.FAILED, reason=reason[:4000]))


def _maker(page: str) -> tuple[str, str] | None:
    """Return the kind of the software that a page names as its generator, and the name."""
    generator = found[1].strip() if (found := _GENERATOR.search(page)) else ""
    kinds = (sign.kind for sign in _SIGNS if generator and sign.generator.search(generator))
    kind = next(kinds, None)
    return (kind, generator) if kind else None


def _kind_of_document(client: PoliteClient, capture: Capture, body: bytes) -> str | None:
    """Return the kind of a catalogue that an address gives itself; None for a page, or anything else."""
    if capture.outcome is not Outcome.OK or _PAGE.search(body[:1000]):
        return None
    for kind, pattern in _DOCUMENTS:
        if pattern.search(body):
            return kind
    quads = (quad for each in client.read(capture) if isinstance(each, Quads) for quad in each.quads)
    said = ((quad.predicate, quad.object) for quad in islice(quads, _MOST_QUADS))
    return "dcat" if any(pair in _CATALOGUES for pair in said) else None


def _is_answer(body: bytes, sign: _Sign) -> bool:
    try:
        answer = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except BAD:
        return False
    return all(key in answer for key in sign.keys)


def _said(capture: Capture) -> str:
    return f"{capture.url} ({capture.reason or capture.outcome.word})"


def _handed_over(kind: str, root: str, why: str, tried: Sequence[str]) -> HarvestStep:
    requests = f"{len(tried)} request{'s' if len(tried) > 1 else ''}"
    end = HarvestEnd(outcome=Outcome.OK, reason=f"{kind}: {why}; {requests}")
    return HarvestStep(state=b"", findings=[Links([root], root, kind)], end=end)
