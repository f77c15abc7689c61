"""Harvester for a portal of unknown software: finds it out in a few requests, and hands the portal over."""

import re
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import msgspec

from tamias.features.dcat.datasets.mapping import BAD
from tamias.features.portals.paging.ways import roots
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.finding import Harvest, HarvestEnd, HarvestStep, Links
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


class PortalHarvester:
    """Looks at the front page, then at the APIs of the likeliest softwares; six requests at the most."""

    kinds = frozenset({"portal"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        root = roots(harvest.url, *_INNER)[0]
        front = await client.ask(Request(url=root, accept="text/html, */*;q=0.5"))
        page = client.body(front, _MOST_BYTES).decode("utf-8", "replace")
        found = _GENERATOR.search(page)
        generator = found[1].strip() if found else ""
        sure = next((sign for sign in _SIGNS if generator and sign.generator.search(generator)), None)
        if sure:
            yield _handed_over(
                sure, root, f"{sure.kind}: the page says it is made by {generator!r}; 1 request"
            )
            return
        tried = [_said(front)]
        likeliest = sorted(_SIGNS, key=lambda sign: -min(100, len(sign.words.findall(page))))
        for sign in likeliest[: MOST_REQUESTS - 1]:
            capture = await client.ask(Request(url=root + sign.path, accept="application/json"))
            if _is_answer(client.body(capture, _MOST_BYTES), sign):
                reason = f"{sign.kind}: {capture.url} answers as it does; {len(tried) + 1} requests"
                yield _handed_over(sign, root, reason)
                return
            tried.append(_said(capture))
        reason = f"no portal software known here was found at {root}; tried: {', '.join(tried)}"[:4000]
        wait = front.retry_after_ms
        end = HarvestEnd(outcome=Outcome.FAILED, reason=reason, retry=front.retry, retry_after_ms=wait)
        yield HarvestStep(state=b"", end=end)


def _is_answer(body: bytes, sign: _Sign) -> bool:
    try:
        answer = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except BAD:
        return False
    return all(key in answer for key in sign.keys)


def _said(capture: Capture) -> str:
    return f"{capture.url} ({capture.reason or capture.outcome.word})"


def _handed_over(sign: _Sign, root: str, reason: str) -> HarvestStep:
    end = HarvestEnd(outcome=Outcome.OK, reason=reason)
    return HarvestStep(state=b"", findings=[Links([root], root, sign.kind)], end=end)
