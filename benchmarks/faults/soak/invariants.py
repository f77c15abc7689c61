"""What must hold at every moment of a long run, from the servers' logs and the archive's own rows."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from benchmarks.faults.evidence import versions
from benchmarks.faults.soak.web import ChangingWeb, Showing
from benchmarks.webs.sites import ServedRequest, gaps, most_at_once
from tamias.database.connect import Session

CLOCK_SECONDS = 0.005
"""How much earlier a request may seem to a server that is itself late to look at the clock."""


class SoakStatus(msgspec.Struct, kw_only=True):
    """How things stand at one moment."""

    seconds: float = 0.0
    urls: int = 0
    """Under watch."""
    requests: int = 0
    versions: int = 0
    urls_lost: int = 0
    """Put under watch, and unknown to the archive."""
    lost: int = 0
    """States that the archive has shown to have, and has not."""
    doubled: int = 0
    """States that are two versions."""
    invented: int = 0
    """Versions that nobody served."""
    early: int = 0
    """Requests to a host before its delay was over."""
    at_once: int = 0
    """Most requests under way to one host."""

    @property
    def breaches(self) -> list[str]:
        """What does not hold, in words."""
        counts = {
            "URLs lost": self.urls_lost,
            "versions lost": self.lost,
            "versions doubled": self.doubled,
            "versions that nobody served": self.invented,
            "requests before the delay was over": self.early,
            "requests at once to one host, instead of one": self.at_once if self.at_once > 1 else 0,
        }
        return [f"{count} {what}" for what, count in counts.items() if count]


def look(
    session: Session, site: ChangingWeb, log: Sequence[ServedRequest], watched: set[str], delay: float
) -> tuple[SoakStatus, dict[str, list[str]]]:
    """How things stand, and the digests of all versions by address."""
    shown = set(site.shown)  # before the rows are read: what was shown by then must be among them
    kept = versions(session)
    pages = [visit for visit in log if visit.path != "/robots.txt"]
    standing = SoakStatus(
        urls=len(watched),
        requests=len(pages),
        versions=sum(map(len, kept.values())),
        urls_lost=len(watched - kept.keys()),
        early=sum(gap < delay - CLOCK_SECONDS for gap in gaps(pages)),
        at_once=most_at_once(pages),
        **compared(kept, shown, {url: set(states) for url, states in list(site.given.items())}),
    )
    return standing, kept


def compared(kept: dict[str, list[str]], shown: set[Showing], given: dict[str, set[str]]) -> dict[str, int]:
    """Versions lost, doubled and invented.

    >>> compared({"u": ["a", "b", "b", "x"]}, {Showing("u", "c")}, {"u": {"a", "b", "c"}})
    {'lost': 1, 'doubled': 1, 'invented': 1}
    """
    return {
        "lost": sum(each.sha256 not in kept.get(each.url, ()) for each in shown),
        "doubled": sum(count - 1 for each in kept.values() for count in Counter(each).values()),
        "invented": sum(digest not in given.get(url, ()) for url, each in kept.items() for digest in each),
    }


def unseen(kept: dict[str, list[str]], given: dict[str, dict[str, int]]) -> list[tuple[str, int]]:
    """States that were sent whole and are no version: address, and how often they were sent."""
    return [
        (url, times)
        for url, states in given.items()
        for digest, times in states.items()
        if digest not in kept.get(url, ())
    ]
