"""When portals listed datasets and files, and what they called them: a period of time for each."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec
from pyoxigraph import NamedNode

from tamias.archive.catalogue.terms import GraphBuilder, address, moment, text
from tamias.database.connect import Session
from tamias.database.sql import statements

_SQL = statements("tamias.archive.catalogue", "catalogue.sql")


Period = tuple[int, int | None]
"""From and until, in milliseconds; without an end while it lasts."""


def overlaps(some: Sequence[Period], others: Sequence[Period]) -> list[Period]:
    """When both were.

    >>> overlaps([(1, None)], [(1, 3), (5, 9), (12, None)]), overlaps([(1, 3), (6, 7)], [(2, 8)])
    ([(1, 3), (5, 9), (12, None)], [(2, 3), (6, 7)])
    """
    found: list[Period] = []
    for start, end in some:
        for from_, until in others:
            ends = [each for each in (end, until) if each is not None]
            first, last = max(start, from_), min(ends, default=None)
            if last is None or first < last:
                found.append((first, last))
    return found


class TitleTime(msgspec.Struct, frozen=True):
    """What a portal called a dataset from a harvest until another, in milliseconds UTC."""

    title: str
    start: int
    end: int | None


class ListedTimes(msgspec.Struct, frozen=True):
    """When a dataset, or a file of it, was listed. Times are milliseconds UTC."""

    url: str
    """Of the file; empty: the dataset as a whole."""
    first_seen: int
    gone_at: int | None
    absences: tuple[tuple[int, int], ...]
    """From and until, oldest first."""

    def periods(self) -> list[Period]:
        """Each time that it was; the last has no end while it lasts.

        >>> ListedTimes("", 1, 9, ((3, 5),)).periods()
        [(1, 3), (5, 9)]
        """
        starts = [self.first_seen, *(back for _, back in self.absences)]
        return list(zip(starts, [*(gone for gone, _ in self.absences), self.gone_at], strict=True))


def read_listings(session: Session, portal: int, records: Sequence[str]) -> dict[str, list[ListedTimes]]:
    """Of datasets of a portal, each with its files."""
    found: dict[str, list[ListedTimes]] = defaultdict(list)
    for record, url, first_seen, gone_at, gone, back in session.fetch_all(
        _SQL["read_listings"], {"portal": portal, "record": list(records)}
    ):
        found[record].append(ListedTimes(url, first_seen, gone_at, tuple(zip(gone, back, strict=True))))
    return found


def read_titles(session: Session, portal: int, records: Sequence[str]) -> dict[str, list[TitleTime]]:
    """Of datasets of a portal, oldest first."""
    found: dict[str, list[TitleTime]] = defaultdict(list)
    for record, *row in session.fetch_all(_SQL["read_titles"], {"portal": portal, "record": list(records)}):
        found[record].append(TitleTime(*row))
    return found


def describe_titles(
    told: GraphBuilder, dataset: NamedNode, portal: NamedNode, scope: str, titles: Sequence[TitleTime]
) -> None:
    """A dct:PeriodOfTime for each title."""
    for number, each in enumerate(titles):
        period = NamedNode(f"{scope}:titled:{number}")
        told.typed(dataset, "arc:titled", period, "dct:PeriodOfTime")
        told.each(
            period,
            {
                "arc:hasPortal": portal,
                "dct:title": text(each.title),
                "dcat:startDate": moment(each.start),
                "dcat:endDate": None if each.end is None else moment(each.end),
            },
        )


def describe_listings(
    told: GraphBuilder, dataset: NamedNode, portal: NamedNode, scope: str, listings: Sequence[ListedTimes]
) -> None:
    """A dct:PeriodOfTime for each time; `scope` is what their names begin with."""
    whole = [period for listing in listings if not listing.url for period in listing.periods()]
    for place, listing in enumerate(listings):
        node = address(listing.url) if listing.url else dataset
        if node is None:
            continue
        # A file is listed while its dataset is.
        periods = overlaps(listing.periods(), whole) if listing.url else listing.periods()
        for number, (start, end) in enumerate(periods):
            period = NamedNode(f"{scope}:listed:{place}:{number}")
            told.typed(node, "arc:listed", period, "dct:PeriodOfTime")
            told.each(
                period,
                {
                    "arc:hasPortal": portal,
                    "dct:isPartOf": dataset if listing.url else None,
                    "dcat:startDate": moment(start),
                    "dcat:endDate": None if end is None else moment(end),
                },
            )
