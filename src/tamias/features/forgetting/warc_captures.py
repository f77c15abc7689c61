"""Captures in WARC files that retention rules do not keep. Their records are erased by what is noted here.

What a rule looks at is a state of the URL: captures with the same body, one after another.
"""

from collections.abc import Iterator, Sequence

import msgspec

from tamias.database.columns import Digests, Longs, Texts
from tamias.database.connect import Session
from tamias.features.forgetting.retention_rules import DatedVersion, RetentionRule
from tamias.features.forgetting.rows import SQL


class CapturedUrl(msgspec.Struct, frozen=True):
    """A URL that WARC files have, with its captures, oldest first."""

    url: str
    portals: list[str]
    captured_at: list[int]
    sha256: list[str]
    length: list[int]
    stays: list[bool]
    """Whether each has to stay, whatever a rule says."""

    def drops(self, rule: RetentionRule, now: int) -> "DroppedCaptures":
        """Return what a rule does not keep; a body that one of the kept states has stays."""
        states = list(self._states())
        gone = {each.number for each in rule.drops(states, now)}
        held = {self.sha256[each.number] for each in states if each.number not in gone}
        held |= {sha256 for sha256, stays in zip(self.sha256, self.stays, strict=True) if stays}
        digests = dict.fromkeys(self.sha256[number] for number in gone if self.sha256[number] not in held)
        lengths = [
            length for sha256, length in zip(self.sha256, self.length, strict=True) if sha256 in digests
        ]
        return DroppedCaptures(list(digests), len(lengths), sum(lengths))

    def _states(self) -> Iterator[DatedVersion]:
        for place, (at, sha256) in enumerate(zip(self.captured_at, self.sha256, strict=True)):
            if not place or self.sha256[place - 1] != sha256:
                yield DatedVersion(place, at, self.length[place])


class DroppedCaptures(msgspec.Struct, frozen=True):
    """Bodies of a URL that are not kept, and what their captures take."""

    sha256: list[str]
    captures: int
    bytes: int


def captured_urls(session: Session, after: str, limit: int) -> list[CapturedUrl]:
    """Return a page of URLs after another."""
    rows = session.fetch_all(SQL["captures_for_rules"], {"after": after, "limit": limit})
    return [CapturedUrl(row[0], row[1], *(each or [] for each in row[2:])) for row in rows]


def dropped_bodies(session: Session, url: str) -> list[str]:
    """Bodies of versions that a rule has removed, and that WARC files still have."""
    return [row[0] for row in session.fetch_all(SQL["dropped_bodies"], {"url": url})]


def drop_captures(session: Session, url: str, sha256: Sequence[str]) -> int:
    """Takes captures out of the index, and notes that their records are to be erased."""
    return session.execute(SQL["drop_captures"], {"url": url, "sha256": Digests(sha256)})


def captures_left(session: Session) -> list[tuple[str, int, str]]:
    """Return what is to be erased: URL, time, SHA-256 of the body."""
    return [(row[0], row[1], row[2]) for row in session.fetch_all(SQL["captures_left"])]


def captures_erased(session: Session, done: Sequence[tuple[str, int, str]]) -> None:
    """The records of these are erased."""
    values = {
        "url": Texts([each[0] for each in done]),
        "captured_at": Longs([each[1] for each in done]),
        "sha256": Digests([each[2] for each in done]),
    }
    session.execute(SQL["captures_erased"], values)
