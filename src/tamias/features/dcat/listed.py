"""Periods in which portals listed datasets and files, and their titles then."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec
from pyoxigraph import NamedNode

from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.dcat.terms import GraphBuilder, Period, address, text
from tamias.model.item import NEVER

_SQL = statements("tamias.features.dcat", "catalogue.sql")


def known_periods(periods: Iterable[Period], at: int) -> list[Period]:
    """Return the periods that had begun at a time; one that ended later had no end then.

    >>> known_periods([(1, 3), (5, 9), (12, None)], 6)
    [(1, 3), (5, None)]
    """
    return [(start, end if end is not None and end <= at else None) for start, end in periods if start <= at]


def overlaps(some: Sequence[Period], others: Sequence[Period]) -> list[Period]:
    """Return the times at which both were.

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
    """The title of a dataset at a portal from one harvest until another, in milliseconds UTC."""

    title: str
    start: int
    end: int | None


class ListedTimes(msgspec.Struct, frozen=True):
    """The times at which a dataset, or a file of it, was listed, in milliseconds UTC."""

    url: str
    """Of the file; empty: the dataset as a whole."""
    first_seen: int
    gone_at: int | None
    absences: tuple[tuple[int, int], ...]
    """From and until, oldest first."""

    def periods(self) -> list[Period]:
        """Return the periods in which it was listed; the last has no end while it lasts.

        >>> ListedTimes("", 1, 9, ((3, 5),)).periods()
        [(1, 3), (5, 9)]
        """
        starts = [self.first_seen, *(back for _, back in self.absences)]
        return list(zip(starts, [*(gone for gone, _ in self.absences), self.gone_at], strict=True))

    def known_at(self, at: int) -> "ListedTimes":
        """Return what was known of it at a time at which it had been seen.

        >>> ListedTimes("", 1, 9, ((3, 5), (6, 8))).known_at(7)
        ListedTimes(url='', first_seen=1, gone_at=6, absences=((3, 5),))
        """
        periods = known_periods(self.periods(), at)
        absences = zip((end for _, end in periods), (start for start, _ in periods[1:]), strict=False)
        return ListedTimes(self.url, self.first_seen, periods[-1][1], tuple((g, b) for g, b in absences if g))


def read_listings(
    session: Session, portal: int, records: Sequence[str], at: int = NEVER
) -> dict[str, list[ListedTimes]]:
    """Return the listings of datasets of a portal with their files, as known at a time."""
    found: dict[str, list[ListedTimes]] = defaultdict(list)
    for record, url, first_seen, gone_at, gone, back in session.fetch_all(
        _SQL["read_listings"], {"portal": portal, "record": list(records)}
    ):
        listed = ListedTimes(url, first_seen, gone_at, tuple(zip(gone, back, strict=True)))
        if first_seen <= at:
            found[record].append(listed.known_at(at))
    return found


def read_titles(
    session: Session, portal: int, records: Sequence[str], at: int = NEVER
) -> dict[str, list[TitleTime]]:
    """Return the titles of datasets of a portal, oldest first, as known at a time."""
    found: dict[str, list[TitleTime]] = defaultdict(list)
    params = {"portal": portal, "record": list(records)}
    for record, title, start, end in session.fetch_all(_SQL["read_titles"], params):
        found[record] += [TitleTime(title, *period) for period in known_periods([(start, end)], at)]
    return found


def describe_titles(
    builder: GraphBuilder, dataset: NamedNode, portal: NamedNode, scope: str, titles: Sequence[TitleTime]
) -> None:
    """A dct:PeriodOfTime for each title."""
    for number, each in enumerate(titles):
        said = {"arc:hasPortal": portal, "dct:title": text(each.title)}
        builder.period(dataset, "arc:titled", f"{scope}:titled:{number}", (each.start, each.end), said)


def describe_listings(
    builder: GraphBuilder, dataset: NamedNode, portal: NamedNode, scope: str, listings: Sequence[ListedTimes]
) -> None:
    """A dct:PeriodOfTime for each time; `scope` is what their names begin with."""
    whole = [period for listing in listings if not listing.url for period in listing.periods()]
    for place, listing in enumerate(listings):
        node = address(listing.url) if listing.url else dataset
        if node is None:
            continue
        # A file is listed while its dataset is.
        periods = overlaps(listing.periods(), whole) if listing.url else listing.periods()
        said = {"arc:hasPortal": portal, "dct:isPartOf": dataset if listing.url else None}
        for number, period in enumerate(periods):
            builder.period(node, "arc:listed", f"{scope}:listed:{place}:{number}", period, said)
