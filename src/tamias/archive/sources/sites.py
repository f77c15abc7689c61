"""Rows of sites: sitemaps that were put, datasets that they offer as a whole, and copies of these."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec

from tamias.archive.sources.access_plan import Access
from tamias.archive.sources.claim import Claim
from tamias.database.columns import stored_json
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.capture import Extent
from tamias.model.lease import Lease
from tamias.model.site import SemanticDataset

_SQL = statements("tamias.archive.sources", "sites.sql")

State = Literal["claimed", "copying", "had", "released"]


class SiteDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset of a Semantic Sitemap, and the way by which a crawl gets it."""

    crawl: int
    key: bytes
    sitemap: str
    state: State
    dataset: SemanticDataset
    plan: list[Access]
    attempt: int = 0
    missing: tuple[str, ...] = ()

    @property
    def access(self) -> Access | None:
        """Return the attempt under way."""
        return self.plan[self.attempt] if self.attempt < len(self.plan) else None


LEAST_DESCRIBED = 0.25
"""The share of URIs that a copy must describe; those that it lacks are requested."""
LEAST_SHARE = 0.5
"""The share of the statements about them that it must have."""


class Comparison(msgspec.Struct, frozen=True):
    """A comparison of a copy with URIs that were looked up in it, and with documents about some of them."""

    compared: int
    """URIs that were looked up."""
    described: int
    documents: int
    statements: int
    """What the documents say about the URIs that they were asked for by."""
    confirmed: int

    @property
    def holds(self) -> bool:
        """Return whether the copy stands for the resources."""
        describes = self.described >= LEAST_DESCRIBED * self.compared
        return describes and self.confirmed >= LEAST_SHARE * self.statements

    @property
    def words(self) -> str:
        """Return the comparison in words."""
        said = f"describes {self.described} of {self.compared} URIs looked up in it"
        if not self.statements:
            return said
        return (
            f"{said} and has {self.confirmed} of {self.statements} statements of {self.documents} documents"
        )


class MetUrl(msgspec.Struct, frozen=True):
    """A covered URL that the crawl has met."""

    url: str
    uid: int
    visited: bool


class Covered(msgspec.Struct, frozen=True):
    """The addresses that a dataset covers."""

    crawl: int
    sitemap: str
    is_copied: bool
    prefixes: tuple[str, ...]
    urls: frozenset[str]
    """Where it is had from: these are asked for, whatever the prefixes say."""
    samples: frozenset[str]
    key: bytes
    copies: tuple[Extent, ...]
    """Where the quads of the copy stand."""
    compared: Comparison | None
    lacks: bool = False
    """Whether the copy does not describe the address that was looked up in it."""

    @property
    def reason(self) -> str:
        """Return why an address that it covers is not requested, or is."""
        if self.lacks:
            return f"not described by the dump of {self.sitemap}"
        found = "" if self.compared is None else f", which {self.compared.words}"
        return f"covered by the dump of {self.sitemap}{found}"


def dataset_key(dataset: SemanticDataset) -> bytes:
    """Return the key of a dataset: its URI, or its prefixes and places, whichever sitemap has them."""
    places = (*dataset.dumps, *dataset.fragments, *dataset.endpoints)
    said = [*(prefix.iri for prefix in dataset.prefixes), *(place.url for place in places)]
    return sha256((dataset.uri or "\n".join(sorted(said))).encode()).digest()[:16]


def site_is_open(session: Session, lease: Lease, crawl: int, authority: str, depth: int) -> bool:
    """Return whether the sitemaps of a site were put in this crawl, at this depth or above."""
    values = {**_site(lease, crawl, authority), "depth": depth}
    return session.fetch_one(_SQL["site_is_open"], values, lease.bucket) is not None


def open_site(session: Session, lease: Lease, crawl: int, authority: str, now: int, depth: int) -> None:
    """Note that the sitemaps of a site are put now."""
    values = {**_site(lease, crawl, authority), "now": now, "depth": depth}
    session.execute(_SQL["open_site"], values, lease.bucket)


class ListedBy(msgspec.Struct, frozen=True):
    """The place whose sitemaps list addresses, in a crawl."""

    bucket: int
    qid: int
    crawl: int
    authority: str


def listed_so_far(session: Session, place: ListedBy) -> tuple[int, int]:
    """Return how many new sitemaps and new addresses the sitemaps of a site have listed."""
    values = msgspec.structs.asdict(place)
    row = session.fetch_one(_SQL["listed_so_far"], values, place.bucket)
    return (0, 0) if row is None else (row[0], row[1])


def count_listed(session: Session, place: ListedBy, sitemaps: int, urls: int) -> None:
    """Count new sitemaps and addresses of a site."""
    values = {
        **msgspec.structs.asdict(place),
        "sitemaps": sitemaps,
        "sitemap_urls": urls,
        "now": session.now(),
    }
    session.execute(_SQL["count_listed"], values, place.bucket)


def put_site_dataset(cursor: Cursor, found: SiteDataset, now: int) -> None:
    """Write a dataset; one that is under way goes on as it began."""
    values = {
        "crawl": found.crawl,
        "dataset": found.key,
        "sitemap": found.sitemap,
        "state": found.state,
        "prefixes": [prefix.iri for prefix in found.dataset.prefixes],
        "description": stored_json(found.dataset),
        "plan": stored_json(found.plan),
        "missing": list(found.missing),
        "now": now,
    }
    cursor.execute(_SQL["put_site_dataset"].text, values)


def waiting_for(session: Session, crawl: int, url: str) -> list[SiteDataset]:
    """Return the datasets that wait for an address."""
    rows = session.fetch_all(_SQL["waiting_for"], {"crawl": crawl, "url": url})
    return [
        SiteDataset(
            crawl=crawl,
            key=bytes(key),
            sitemap=sitemap,
            state=state,
            dataset=msgspec.convert(description, SemanticDataset),
            plan=msgspec.convert(plan, list[Access]),
            attempt=attempt,
            missing=tuple(missing),
        )
        for key, sitemap, state, description, plan, attempt, missing in rows
    ]


def covered(session: Session) -> list[Covered]:
    """Return what need not be requested one by one, in all crawls."""
    rows = session.fetch_all(_SQL["covered"])
    return [
        Covered(
            crawl,
            sitemap,
            state == "had",
            tuple(prefixes),
            frozenset(urls or ()),
            frozenset(samples or ()),
            bytes(key),
            tuple(msgspec.convert(copies, list[Extent])),
            None if compared[0] is None else Comparison(*compared),
        )
        for crawl, key, sitemap, state, prefixes, urls, samples, copies, *compared in rows
    ]


def note_read(cursor: Cursor, crawl: int, url: str, extent: Extent | None) -> None:
    """Note that an address of the attempts under way was read, and where its quads are."""
    copies = stored_json([] if extent is None else [extent])
    cursor.execute(_SQL["note_read"].text, {"crawl": crawl, "url": url, "copies": copies})


def met_urls(session: Session, lease: Lease, dataset: Covered, most: int) -> list[MetUrl]:
    """Return URLs of a host that a dataset covers and the crawl has met; first those it has visited."""
    values = {
        "bucket": lease.bucket,
        "qid": lease.qid,
        "crawl": dataset.crawl,
        "prefixes": list(dataset.prefixes),
        "urls": list(dataset.urls),
        "most": most,
    }
    return [MetUrl(*row) for row in session.fetch_all(_SQL["met"], values)]


def any_unvisited(session: Session, lease: Lease, dataset: Covered, uids: Iterable[int]) -> bool:
    """Return whether one of these URLs of a host was not visited yet."""
    values = {"bucket": lease.bucket, "qid": lease.qid, "crawl": dataset.crawl, "uid": list(uids)}
    return session.fetch_one(_SQL["any_unvisited"], values) is not None


def documents_of(
    session: Session, lease: Lease, dataset: Covered, met: Sequence[MetUrl]
) -> dict[str, Extent]:
    """Return where the quads are that were last read from these URLs of a host."""
    url_of = {each.uid: each.url for each in met}
    values = {"bucket": lease.bucket, "qid": lease.qid, "crawl": dataset.crawl, "uid": list(url_of)}
    return {url_of[uid]: Extent(*place) for uid, *place in session.fetch_all(_SQL["documents_of"], values)}


def note_compared(session: Session, dataset: Covered, found: Comparison) -> bool:
    """Save what was found and return whether nobody had; unless the copy holds, it covers nothing."""
    values = {
        **msgspec.structs.asdict(found),
        "crawl": dataset.crawl,
        "dataset": dataset.key,
        "state": "had" if found.holds else "released",
    }
    return session.execute(_SQL["note_compared"], values) > 0


def note_failed(cursor: Cursor, failed: SiteDataset) -> None:
    """Note that an attempt failed."""
    following = after(failed)
    values = {
        "crawl": failed.crawl,
        "dataset": failed.key,
        "attempt": failed.attempt,
        "missing": list(following.urls) if following else [],
        "state": "copying" if following else "released",
    }
    cursor.execute(_SQL["note_failed"].text, values)


def after(failed: SiteDataset) -> Access | None:
    """Return the next attempt; None when each IRI must be requested by itself."""
    later = failed.plan[failed.attempt + 1 : failed.attempt + 2]
    return later[0] if later and later[0].kind != "dereference" else None


def note_claims(cursor: Cursor, crawl: int, claims: Sequence[Claim]) -> None:
    """Write the claims of hosts' sitemaps."""
    for host in {claim.host for claim in claims}:
        digests = [_digest(claim) for claim in claims if claim.host == host]
        cursor.execute(_SQL["put_claims"].text, {"crawl": crawl, "host": host, "statement": digests})


def others_claims(session: Session, crawl: int, claims: Iterable[Claim]) -> list[Claim]:
    """Return the same claims as other hosts make them."""
    statement_of = {_digest(claim): claim.statement for claim in claims}
    rows = session.fetch_all(_SQL["read_claims"], {"crawl": crawl, "statement": list(statement_of)})
    return [Claim(host, statement_of[bytes(digest)]) for host, digest in rows]


def waiting_claims(session: Session, crawl: int) -> list[tuple[str, SemanticDataset]]:
    """Return datasets that wait for the sitemaps of other hosts, with their own sitemaps."""
    rows = session.fetch_all(_SQL["waiting_claims"], {"crawl": crawl})
    return [(sitemap, msgspec.convert(said, SemanticDataset)) for _, sitemap, said in rows]


def _digest(claim: Claim) -> bytes:
    return sha256(msgspec.json.encode(claim.statement)).digest()[:16]


def _site(lease: Lease, crawl: int, authority: str) -> dict[str, Any]:
    return {"bucket": lease.bucket, "qid": lease.qid, "crawl": crawl, "authority": authority}
