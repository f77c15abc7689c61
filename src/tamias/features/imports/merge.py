"""Puts versions that come late into the history of a resource, where their times say.

The history afterwards is that of somebody who was there at all these times: the order of imports makes no
difference. A version's number is its place, so those behind a late one get other numbers.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tamias.archive.moments import shown
from tamias.archive.versions.judgement import AttemptMeaning, Judgement, KnownState
from tamias.archive.versions.resources import VERSION_ROWS, add_suspects, versions_within
from tamias.database.columns import Ints, Texts
from tamias.database.connect import Cursor
from tamias.database.sql import statements
from tamias.features.archive.judge import Observation, judge
from tamias.model.capture import Outcome
from tamias.model.resource import Version

SQL = statements("tamias.features.imports", "merge.sql")
MOST_SIGHTINGS = 100_000
_SAME_CONTENT = "other bytes, the same content"


class VisitedUrl(msgspec.Struct, frozen=True):
    """A URL as captures are found by it."""

    bucket: int
    qid: int
    uid: int
    crawls: tuple[int, ...]


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """The content that was seen at a time."""

    at: int
    sha256: str
    capture: str
    version: Version | None = None
    """Set for one that has been a version already."""
    new: Version | None = None
    """Set for one that comes late."""


class LateVersions(msgspec.Struct, frozen=True):
    """Bodies of one resource that come late, and where its own captures are."""

    resource: str
    url: VisitedUrl
    bodies: list[Version]


class _Placed(msgspec.Struct):
    """A version at its place."""

    number: int
    before: int | None
    """The number that it had."""
    row: Version
    changed: bool = False


def merge_late(cursor: Cursor, late: Sequence[LateVersions]) -> int:
    """Merge late versions, in the transaction of their captures; return how many were added.

    The resources must be there, each once. The same again changes nothing.
    """
    rows = cursor.execute(SQL["lock_resources"].text, {"resource": Texts([each.resource for each in late])})
    known = {row[0]: row for row in rows.fetchall()}
    added = 0
    for each in late:
        _, host, expected, *_ = known[each.resource]
        added += _Merge(cursor, each, host, expected).run()
    return added


class _Merge:
    """The merge of late versions into one resource."""

    def __init__(self, cursor: Cursor, late: LateVersions, host: str, expected: str | None) -> None:
        self._cursor = cursor
        self._late = late
        self._host = host
        self._expected = expected

    def run(self) -> int:
        versions = versions_within(self._cursor, self._late.resource)
        there = {version.capture for version in versions}
        bodies = [body for body in self._late.bodies if body.capture not in there]
        if not bodies:
            return 0
        bodies = self._trusted(versions, sorted(bodies, key=lambda body: body.captured_at))
        if not bodies:
            return 0
        standing = [
            Sighting(at=each.captured_at, sha256=each.sha256, capture=each.capture, version=each)
            for each in versions
        ]
        new = [
            Sighting(at=body.captured_at, sha256=body.sha256, capture=body.capture, new=body)
            for body in bodies
        ]
        seen = self._seen_again(versions, bodies[0].captured_at)
        placed = place(merged(standing, [*new, *seen]), {body.sha256: body for body in bodies})
        return self._write(placed)

    def _trusted(self, versions: list[Version], bodies: list[Version]) -> list[Version]:
        """Return the bodies that are no suspects, by the version before each; store the others."""
        trusted: list[Version] = []
        suspects: list[tuple[Version, str]] = []
        for body in bodies:
            if body.suspicious is not None:
                suspects.append((body, body.suspicious.removeprefix("suspect: ")))
                continue
            known: list[Version] = [*versions, *trusted]
            earlier = [each for each in known if each.captured_at <= body.captured_at]
            before = max(earlier, key=lambda each: each.captured_at, default=None)
            judgement = _judged(body, before, self._expected)
            if judgement.meaning is AttemptMeaning.SUSPECT:
                suspects.append((body, judgement.reason or ""))
            else:
                trusted.append(msgspec.structs.replace(body, suspicious=judgement.accepted))
        add_suspects(self._cursor, suspects)
        return trusted

    def _seen_again(self, versions: list[Version], after: int) -> list[Sighting]:
        """Later visits of ours that found the version of their time: it is there again after a late one."""
        url = self._late.url
        values = {"bucket": url.bucket, "qid": url.qid, "uid": url.uid, "crawl": list(url.crawls)}
        values |= {"after": after, "limit": MOST_SIGHTINGS}
        seen: list[Sighting] = []
        times = [each.captured_at for each in versions]
        for at, sha256, capture in self._cursor.execute(SQL["sightings"].text, values).fetchall():
            number = bisect_right(times, at)
            if number and sha256 in (None, versions[number - 1].sha256):
                seen.append(Sighting(at=at, sha256=versions[number - 1].sha256, capture=capture))
        return seen

    def _write(self, placed: list[_Placed]) -> int:
        moved = [each for each in placed if each.before not in (None, each.number)]
        changed = [each for each in placed if each.changed]
        new = [each for each in placed if each.before is None]
        execute = self._cursor.execute
        if moved:
            self._renumber(moved)
        if changed:
            execute(SQL["correct_versions"].text, _columns(changed))
        if new:
            execute(SQL["count_bodies"].text, {"host": Texts([self._host] * len(new)), **_columns(new)})
            execute(SQL["insert_versions"].text, _columns(new))
        if altered := [*moved, *(each for each in changed if each not in moved)]:
            execute(SQL["tell_catalogue"].text, _columns(altered))
        if new or altered:
            execute(SQL["set_current"].text, _columns(placed[-1:]))
        return len(new)

    def _renumber(self, moved: list[_Placed]) -> None:
        execute, resource = self._cursor.execute, self._late.resource
        numbers = {
            "resource": Texts([resource] * len(moved)),
            "before": Ints([each.before for each in moved]),
            "number": Ints([each.number for each in moved]),
        }
        execute(SQL["put_aside"].text, numbers)
        execute(SQL["take_places"].text, {"resource": Texts([resource])})
        execute(SQL["renumber_events"].text, numbers)
        execute(SQL["renumber_news"].text, numbers)


def merged(standing: Iterable[Sighting], others: Iterable[Sighting]) -> list[Sighting]:
    """The history of all that was seen: one entry for each time that something else was there.

    A version that was seen earlier than was known is that version, from then on. Pure.
    """
    history: list[Sighting] = []
    for each in sorted([*standing, *others], key=lambda seen: (seen.at, seen.version is None)):
        last = history[-1] if history else None
        if last is None or last.sha256 != each.sha256:
            history.append(each)
        elif each.version is not None and last.version is None:
            history[-1] = msgspec.structs.replace(each, at=last.at, capture=last.capture)
        elif each.version is not None:
            history.append(each)
    return history


def place(history: Sequence[Sighting], bodies: Mapping[str, Version]) -> list[_Placed]:
    """The same with numbers; `bodies` are those that come late, by their digests. Pure."""
    known = {each.sha256: each.version for each in history if each.version is not None}
    placed: list[_Placed] = []
    late = 0
    for each in history:
        before = placed[-1] if placed else None
        row = each.version or each.new or known.get(each.sha256) or bodies[each.sha256]
        noise = _noise(row, before.row if before else None)
        earlier = msgspec.structs.replace(row, captured_at=each.at, capture=each.capture, noise=noise)
        least = before.number + 1 if before else 1
        if each.version is None:
            late += 1
            placed.append(_Placed(least, None, earlier))
        else:
            number = each.version.number
            placed.append(_Placed(max(least, number + late), number, earlier, changed=earlier != row))
    return placed


def _noise(row: Version, before: Version | None) -> str | None:
    """Return why only the bytes differ from those of the version before, if so."""
    if before is None or row.fingerprint is None or row.fingerprint != before.fingerprint:
        return None
    return row.noise or _SAME_CONTENT


def _judged(body: Version, before: Version | None, expected: str | None) -> Judgement:
    observed = shown(Observation, body, outcome=Outcome.OK, size=body.byte_size)
    return judge(observed, shown(KnownState, before, expected=expected, items=None))


def _columns(placed: Sequence[_Placed]) -> dict[str, object]:
    rows = VERSION_ROWS.parameters([each.row for each in placed])
    return {**rows, "number": Ints([each.number for each in placed])}
