"""Keeps what came of resources under watch: judged, stored as a version if it is one, due again in its time.

Compressing takes its time, so it has a thread and a session of its own.
"""

import random
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from tamias.archive.blobs import BlobWriter, Prepared
from tamias.archive.sources.catalogues import read_trust, write_trust
from tamias.archive.versions.fingerprints import fingerprint
from tamias.archive.versions.judgement import AttemptMeaning, Came, Judgement, KnownState, judge
from tamias.archive.versions.resources import (
    NewVersion,
    VisitNote,
    Watched,
    add_suspect,
    add_version,
    count_shared,
    note_visit,
    put_resources,
    read_watched,
)
from tamias.crawl.revisit.timetable import Timetable
from tamias.database.connect import Cursor, Session
from tamias.database.threads import SessionThread
from tamias.frontier.service.state import WATCH
from tamias.model.capture import Body, Capture, Outcome
from tamias.model.faults import reached
from tamias.model.item import NEVER
from tamias.model.kind import AUXILIARY, SITEMAP, kind_of
from tamias.model.lease import Task
from tamias.model.resource import Resource, resource_id
from tamias.model.url import host, without_password
from tamias.schedule.hints import ResourceHints, Trust, first_interval, said_changed, told_by_http
from tamias.schedule.history import Seen, pack, unpack
from tamias.schedule.visit import NextVisit, VisitPolicy, next_visit

MOST_UNCOMMITTED = 10_000
"""Bodies that are remembered until their commit, and some time longer."""

SEEN: dict[AttemptMeaning, Seen] = {
    AttemptMeaning.CHANGED: "changed",
    AttemptMeaning.NOISE: "noise",
    AttemptMeaning.UNCHANGED: "unchanged",
    AttemptMeaning.SUSPECT: "failed",
    AttemptMeaning.GONE: "gone",
    AttemptMeaning.FAILED: "failed",
}
_TELLING = (AttemptMeaning.CHANGED, AttemptMeaning.NOISE, AttemptMeaning.UNCHANGED)


class ArchiveResult(msgspec.Struct, kw_only=True):
    """What became of one attempt on a resource, and what makes it true."""

    watched: Watched
    judgement: Judgement
    capture: Capture
    media_type: str | None
    fingerprint: str | None
    prepared: Prepared | None
    next: NextVisit
    trust: Trust | None
    """In the dates that the host's sitemaps and catalogues tell, after this visit."""
    is_new: bool
    is_watched: bool
    """Whether the archive's own schedule visits it again; else whoever crawls it says when that is."""
    now: int

    @property
    def trusted(self) -> bool:
        """Whether what came is what the resource is."""
        return self.judgement.meaning in _TELLING

    def record(self, cursor: Cursor, capture_id: str) -> None:
        """Inside the transaction of the visit, after the blob's own row."""
        if self.is_new:
            resource = Resource(id=self.watched.id, url=self.watched.url, added_at=self.now)
            put_resources(cursor, [(resource, self.watched.host)], self.now)
        if self.prepared is not None:
            self._add(cursor, self._version(capture_id, self.prepared))
        note_visit(cursor, self._note())
        if self.trust is not None:
            write_trust(cursor, self.watched.host, self.trust.right, self.trust.checked)

    def _add(self, cursor: Cursor, version: NewVersion) -> None:
        if self.judgement.meaning is AttemptMeaning.SUSPECT:
            add_suspect(cursor, version, self.watched.host, self.judgement.reason or "")
        else:
            add_version(cursor, version, self.watched.host)

    def _version(self, capture_id: str, prepared: Prepared) -> NewVersion:
        return NewVersion(
            resource=self.watched.id,
            captured_at=self.capture.started_at,
            sha256=prepared.sha256,
            byte_size=prepared.size,
            media_type=self.media_type,
            told_type=self.capture.told_type,
            fingerprint=self.fingerprint,
            noise=self.judgement.meaning is AttemptMeaning.NOISE,
            capture=capture_id,
        )

    def _note(self) -> VisitNote:
        gone = self.judgement.meaning is AttemptMeaning.GONE
        state = "gone" if gone else self.watched.state if not self.trusted else "active"
        return VisitNote(
            resource=self.watched.id,
            state=state,
            now=self.now,
            next_visit=self.next.due_ms if self.is_watched else None,
            fails=self.next.history.fails,
            history=pack(self.next.history),
            change_rate=self.next.rate,
            visited_at=self.now if self.trusted else None,
            trouble=None if self.trusted else self._trouble(),
        )

    def _trouble(self) -> str:
        if self.judgement.meaning is AttemptMeaning.SUSPECT:
            return f"suspicious: {self.judgement.reason}"
        return f"{self.capture.outcome.word}: {self.capture.reason}"


class SharedBodies:
    """How many resources of a host have one body; also those of visits that are not committed yet.

    A host is visited by one worker at a time, so nobody else has news of it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._latest: dict[tuple[str, str], int] = {}

    def count(self, host: str, sha256: str) -> int:
        """By the database, or by what it will soon say."""
        return max(count_shared(self._session, host, sha256), self._latest.get((host, sha256), 0))

    def add(self, host: str, sha256: str) -> None:
        """One more has it."""
        count = self.count(host, sha256) + 1
        # Added again at the end, so that the oldest is forgotten first.
        self._latest.pop((host, sha256), None)
        self._latest[host, sha256] = count
        if len(self._latest) > MOST_UNCOMMITTED:
            del self._latest[next(iter(self._latest))]


class Archiver:
    """Keeps resources for one worker. What is not kept by its commit did not happen."""

    def __init__(
        self,
        writer: BlobWriter,
        session: Session,
        policy: VisitPolicy,
        *,
        key: Callable[[str], str],
        everything: bool,
    ) -> None:
        """`key` identifies a URL; `everything`: keep all that is crawled, not just what is watched."""
        self._writer = writer
        self._session = session
        self._policy = policy
        self._key = key
        self._everything = everything
        self._thread = SessionThread(session, "archive")
        self._unsettled = 0
        self._lock = threading.Lock()
        self._timetable = Timetable(session)
        self._shared = SharedBodies(session)

    def wants(self, task: Task) -> bool:
        """Whether a task's document is to be kept."""
        kind = kind_of(task.tags)
        if task.crawl == WATCH:
            return kind not in {*AUXILIARY, SITEMAP}
        return self._everything and kind not in AUXILIARY

    def keep(self, task: Task, capture: Capture, media_type: str | None) -> ArchiveResult:
        """Judges what came, and writes it down if it is to be kept. For a thread that can wait."""
        self._count(1)  # before it is prepared, or its pack might be sealed too early
        try:
            return self._thread.wait(self._keep, task, capture, media_type)
        except BaseException:
            self._count(-1)
            raise

    def _count(self, change: int) -> int:
        with self._lock:
            self._unsettled += change
            return self._unsettled

    def sync(self) -> None:
        """Makes durable what was written; before the transactions that rely on it."""
        if self._unsettled:
            self._thread.wait(self._writer.sync)

    def settle(self, kept: ArchiveResult) -> None:
        """The transaction has ended, whichever way."""
        # No body waits for its row any more, so its pack may be sealed.
        if self._count(-1) == 0 and kept.prepared is not None:
            self._thread.submit(self._writer.settled)

    def close(self) -> None:
        """Lets go of the packs."""
        self._thread.wait(self._writer.close)
        self._thread.close()

    def _keep(self, task: Task, capture: Capture, media_type: str | None) -> ArchiveResult:
        reached("body-fetched")
        watched, is_new = self._watched(task)
        print_of = self._fingerprint(capture, media_type, watched.known)
        came = self._came(capture, media_type, print_of, watched)
        judgement = judge(came, watched.known)
        stored = judgement.meaning in (AttemptMeaning.CHANGED, AttemptMeaning.NOISE, AttemptMeaning.SUSPECT)
        prepared = None
        if stored and capture.body is not None:
            prepared = self._writer.prepare(capture.body, watched.known.sha256)
            self._shared.add(watched.host, capture.body.sha256)
            reached("blob-written")
        return ArchiveResult(
            watched=watched,
            judgement=judgement,
            capture=capture,
            media_type=media_type,
            fingerprint=print_of,
            prepared=prepared,
            next=self._next(watched, judgement, capture),
            trust=self._tested(watched, judgement, capture.ended_at),
            is_new=is_new,
            is_watched=task.crawl == WATCH,
            now=self._session.now(),
        )

    def _watched(self, task: Task) -> tuple[Watched, bool]:
        url = without_password(task.url)
        identifier = resource_id(self._key(url))
        watched = read_watched(self._session, identifier)
        if watched is not None:
            return watched, False
        return Watched(
            id=identifier, url=url, host=host(task.url), state="active", importance=1.0, versions=0,
            known=KnownState(), history=None, visited_at=None, fails=0, hint_at=None,
        ), True  # fmt: skip

    def _came(self, capture: Capture, media_type: str | None, print_of: str | None, watched: Watched) -> Came:
        body = capture.body
        shared = 0
        if body is not None and body.sha256 != watched.known.sha256:
            shared = self._shared.count(watched.host, body.sha256)
        return Came(
            outcome=capture.outcome,
            sha256=body.sha256 if body else None,
            size=body.size if body else 0,
            media_type=media_type,
            fingerprint=print_of,
            shared_by=shared,
        )

    def _fingerprint(self, capture: Capture, media_type: str | None, known: KnownState) -> str | None:
        body = capture.body
        if body is None or capture.outcome is not Outcome.OK or body.sha256 == known.sha256:
            return None
        return _fingerprint_of(body, media_type)

    def _expected(self, watched: Watched, capture: Capture) -> float | None:
        """How often it changes by the word of others, before anything was seen."""
        now = capture.ended_at
        told = told_by_http(capture.hops[-1].header, now) if capture.hops else ResourceHints()
        dates = [date for date in (told.modified_at, watched.hint_at) if date is not None]
        told = msgspec.structs.replace(
            told, frequency=watched.frequency, modified_at=max(dates, default=None)
        )
        return first_interval(told, now, self._policy.terms)

    def _tested(self, watched: Watched, judgement: Judgement, now: int) -> Trust | None:
        """What the visit says about the host's dates, if there was one to be put to the test."""
        if watched.hint_at is None or watched.visited_at is None or judgement.meaning not in _TELLING:
            return None
        known = Trust(*read_trust(self._session, [watched.host]).get(watched.host, (0, 0)))
        said = said_changed(watched.hint_at, watched.visited_at, now)
        return known.after(said, judgement.meaning is AttemptMeaning.CHANGED)

    def _next(self, watched: Watched, judgement: Judgement, capture: Capture) -> NextVisit:
        history = unpack(watched.history)
        found = next_visit(
            history,
            SEEN[judgement.meaning],
            capture.ended_at,
            expected_days=self._expected(watched, capture) if history.visited_at is None else None,
            threshold=self._timetable.threshold(watched.host),
            importance=watched.importance,
            policy=self._policy,
            chance=random.random(),
        )
        due = _by_user(watched, judgement, capture, found.due_ms)
        if capture.retry_after_ms is not None:
            due = max(due, capture.ended_at + capture.retry_after_ms)
        return msgspec.structs.replace(found, due_ms=due)


def _by_user(watched: Watched, judgement: Judgement, capture: Capture, due: int) -> int:
    """When the user wants it visited again, where the schedule says `due`."""
    if watched.state == "stopped":
        return NEVER
    if watched.wanted_at is not None and watched.wanted_at > capture.started_at:
        return capture.ended_at
    if watched.every is None:
        return due
    regular = capture.ended_at + watched.every
    return regular if judgement.meaning in _TELLING else min(due, regular)


def _fingerprint_of(body: Body, media_type: str | None) -> str | None:
    if body.path is not None:
        return fingerprint(Path(body.path), media_type)
    with tempfile.NamedTemporaryFile(prefix="tamias-") as file:
        file.write(body.data or b"")
        file.flush()
        return fingerprint(Path(file.name), media_type)
