"""Claims of a sitemap about other hosts: only those count that their own sitemaps make too. Pure."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from tamias.model.errors import UrlError
from tamias.model.site import SemanticDataset
from tamias.model.url import authority, fetch_url

NOBODY = ""
"""The host of what is not a web address."""

_WHOLE_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\\\s]+[/?#]")


class ClaimedStatement(msgspec.Struct, frozen=True):
    """A statement that a dataset is available at a place, or that its IRIs begin with a prefix."""

    dataset: str
    """Its URI; without one its prefixes; without those all its locations."""
    kind: str
    """`prefix`, `dump`, `fragment` or `sparql`."""
    place: str
    """The location or the prefix."""


class Claim(msgspec.Struct, frozen=True):
    """A statement, and the host in whose sitemap it stands."""

    host: str
    """With its port, where that is not the usual one."""
    statement: ClaimedStatement


def claims(dataset: SemanticDataset, sitemap_url: str) -> list[Claim]:
    """Return all that a sitemap states about a dataset."""
    speaker = _host(sitemap_url)
    return [Claim(speaker, statement) for statement in _statements(dataset)]


def authoritative(
    dataset: SemanticDataset, sitemap_url: str, other_claims: Iterable[Claim]
) -> frozenset[str]:
    """Return the locations and prefixes that count: on the sitemap's host, or stated by the other host too.

    To be asked again whenever one of the sitemaps changes.
    """
    speaker, others = _host(sitemap_url), frozenset(other_claims)
    return frozenset(
        statement.place
        for statement in _statements(dataset)
        if (target := _target(statement)) == speaker or Claim(target, statement) in others
    )


def hosts_to_ask(dataset: SemanticDataset, sitemap_url: str) -> frozenset[str]:
    """Return the other hosts whose sitemaps decide about something that is claimed here."""
    targets = {_target(statement) for statement in _statements(dataset)}
    return frozenset(targets - {_host(sitemap_url), NOBODY})


def _statements(dataset: SemanticDataset) -> Iterator[ClaimedStatement]:
    name = _name(dataset)
    for prefix in dataset.prefixes:
        yield ClaimedStatement(name, "prefix", prefix.iri)
    for kind, locations in (
        ("dump", dataset.dumps),
        ("fragment", dataset.fragments),
        ("sparql", dataset.endpoints),
    ):
        for location in locations:
            yield ClaimedStatement(name, kind, location.url)


def _name(dataset: SemanticDataset) -> str:
    locations = (*dataset.dumps, *dataset.fragments, *dataset.endpoints)
    said = {prefix.iri for prefix in dataset.prefixes} or {location.url for location in locations}
    return dataset.uri or " ".join(sorted(said))


def _target(statement: ClaimedStatement) -> str:
    """Return the host that a statement is about. A prefix that ends within a host's name is about many."""
    if statement.kind == "prefix" and not _WHOLE_HOST.match(statement.place):
        return NOBODY
    return _host(statement.place)


def _host(place: str) -> str:
    """Host and port: http and https are one site."""
    try:
        return authority(fetch_url(place)).partition("://")[2]
    except UrlError:
        return NOBODY
