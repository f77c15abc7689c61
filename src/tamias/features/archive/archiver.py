"""Archive responses of watched resources: judged, stored as a version if it is one, due again in its time.

Compressing takes its time, so it has a thread and a session of its own. What comes while the thread is busy
is kept together: one read for all of it, and one write with the commit.
"""

import asyncio
import random
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from math import inf
from pathlib import Path

import msgspec

from tamias.archive.blobs import Blob, BlobDamaged, BlobMissing, BlobWriter, Prepared, insert_blobs
from tamias.archive.sources.catalogues import read_trust, write_trust
from tamias.archive.versions.judgement import PAGES, AttemptMeaning, Judgement, KnownState
from tamias.archive.versions.resources import (
    VisitNote,
    Watched,
    add_suspects,
    add_versions,
    note_visits,
    put_resources,
    read_declared_type,
    read_watched,
)
from tamias.content.formats import CSV, PARQUET, TSV, Form, form_of, type_with_charset
from tamias.crawl.revisit.timetable import Timetable
from tamias.crawl.store.visit import SEEN, CommitBatch, CommitHook, JudgedResponse, Visit
from tamias.database.connect import Cursor, Session
from tamias.database.threads import SessionThread, wait_uncancelled
from tamias.features.archive.canonical.content_digest import (
    ContentDigest,
    Stored,
    content_digest,
    fingerprint_of,
    is_comparable,
    noise_between,
)
from tamias.features.archive.judge import Observation, error_in, judge
from tamias.model.capture import Body, Capture, Outcome
from tamias.model.faults import reached
from tamias.model.item import NEVER, WATCH
from tamias.model.kind import AUXILIARY, SITEMAP, kind_of
from tamias.model.lease import Task
from tamias.model.resource import Resource, Version, resource_id
from tamias.model.url import host, without_password
from tamias.plugins import find
from tamias.schedule.hints import ResourceHints, Trust, first_interval, http_hints, said_changed
from tamias.schedule.visit import NextVisit, VisitPolicy, next_visit, pack, unpack

MOST_UNCOMMITTED = 10_000
"""Bodies that are remembered until their commit, and some time longer."""

MOST_AT_ONCE = 100
"""Captures that are kept together."""

COUNTED: dict[Form, str] = {
    Form.ROWS: "rows", Form.SHEETS: "rows", Form.STATEMENTS: "statements", Form.MEMBERS: "files",
    Form.TEXT: "lines", Form.JSON_LINES: "lines",
}  # fmt: skip
_DATA = dict.fromkeys(Form, 2.0) | {Form.STATEMENTS: 1, Form.MEMBERS: 1, Form.TEXT: inf}
"""Items that make data of each form: any message can be read as a table of one row."""
_STORED = (AttemptMeaning.CHANGED, AttemptMeaning.NOISE, AttemptMeaning.SUSPECT)


class ArchiveResult(JudgedResponse, kw_only=True):
    """The result of one attempt on a resource, and what is needed to commit it."""

    capture: Capture
    media_type: str | None
    content: ContentDigest | None
    """What it says, where that was read."""
    noise: str | None
    """Why only the bytes differ, if so."""
    prepared: Prepared | None
    profile: tuple[bytes, str | None] | None = None
    """Of a small table, as it is stored; others are profiled by the service."""
    trust: Trust | None
    """In the dates that the host's sitemaps and catalogues tell, after this visit."""
    is_new: bool
    is_watched: bool
    """Whether the archive's own schedule visits it again; else whoever crawls it says when that is."""
    now: int
    is_settled: bool = False
    """Whether nobody waits for its commit any more."""

    @property
    def stored_body(self) -> Body | None:
        """Return the body, if it is to be stored."""
        return self.capture.body if self.judgement.meaning in _STORED else None

    @property
    def is_suspect(self) -> bool:
        """Return whether the response is suspicious."""
        return self.judgement.meaning is AttemptMeaning.SUSPECT

    def version(self, capture_id: str, prepared: Prepared) -> Version:
        """The row of its body."""
        packed, tables = self.profile or (None, None)
        return Version(
            resource=self.watched.id,
            captured_at=self.capture.started_at,
            sha256=prepared.sha256,
            byte_size=prepared.size,
            media_type=self.media_type,
            declared_type=self.capture.declared_type,
            fingerprint=fingerprint_of(self.content),
            items=self.content.items if self.content else None,
            noise=self.noise,
            suspicious=self.judgement.accepted,
            capture=capture_id,
            packed=packed,
            tables=tables,
        )

    def note(self) -> VisitNote:
        """Return the consequences of the visit for the resource."""
        gone = self.judgement.meaning is AttemptMeaning.GONE
        state = "gone" if gone else self.watched.state if not self.judgement.trusted else "active"
        return VisitNote(
            resource=self.watched.id,
            state=state,
            now=self.now,
            next_visit=self.next.due_ms if self.is_watched else None,
            fails=self.next.history.fails,
            history=pack(self.next.history),
            change_rate=self.next.rate,
            missed=self.next.missed,
            visited_at=self.now if self.judgement.trusted else None,
            trouble=None if self.judgement.trusted else self._trouble(),
            suspicious=True if self.is_suspect else False if self.judgement.trusted else None,
        )

    def _trouble(self) -> str:
        if self.is_suspect and self.capture.outcome is Outcome.OK:
            return f"suspicious: {self.judgement.reason}"
        return f"{self.capture.outcome.word}: {self.capture.reason}"


def _put_new(cursor: Cursor, new: Sequence[ArchiveResult]) -> None:
    if new:
        known = [Resource(id=each.watched.id, url=each.watched.url, added_at=each.now) for each in new]
        hosts = [each.watched.host for each in new]
        put_resources(cursor, list(zip(known, hosts, strict=True)), new[0].now)


def record_results(cursor: Cursor, results: Sequence[tuple[ArchiveResult, str]]) -> None:
    """Write the results, each with its capture id, in the transaction of the visits, after the blob rows."""
    _put_new(cursor, [each for each, _ in results if each.is_new])
    for some in _rounds(results):
        bodies = [(each, each.version(capture, each.prepared)) for each, capture in some if each.prepared]
        suspect = [(version, each.judgement.reason or "") for each, version in bodies if each.is_suspect]
        add_versions(cursor, [version for each, version in bodies if not each.is_suspect])
        add_suspects(cursor, suspect)
        note_visits(cursor, [each.note() for each, _ in some])
    trust = {each.watched.host: each.trust for each, _ in results if each.trust is not None}
    for name, after in trust.items():
        write_trust(cursor, name, after.right, after.checked)


def _rounds(results: Iterable[tuple[ArchiveResult, str]]) -> list[list[tuple[ArchiveResult, str]]]:
    """Split results into rounds with each resource once, as a statement does not see its own writes."""
    rounds: list[list[tuple[ArchiveResult, str]]] = []
    visits: Counter[str] = Counter()
    for each in results:
        turn = visits[each[0].watched.id]
        visits[each[0].watched.id] += 1
        rounds += [[]] if turn == len(rounds) else []
        rounds[turn].append(each)
    return rounds


class SharedBodies:
    """The number of resources of a host with the same body, including uncommitted visits.

    A host is visited by one worker at a time, so nobody else has news of it.
    """

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], int] = {}
        self._counted: dict[tuple[str, str], int] = {}

    def count(self, host: str, sha256: str, stored: int) -> int:
        """Return the larger of the stored count and the count with uncommitted visits."""
        return max(stored, self._latest.get((host, sha256), 0))

    def add(self, host: str, sha256: str, stored: int, resource: str) -> None:
        """Count a resource with this body, unless it is already counted and not yet committed."""
        if (resource, sha256) not in self._counted:
            _remember(self._counted, (resource, sha256), 1)
            _remember(self._latest, (host, sha256), self.count(host, sha256, stored) + 1)


def _remember(known: dict[tuple[str, str], int], key: tuple[str, str], value: int) -> None:
    # Added again at the end, so that the oldest is forgotten first.
    known.pop(key, None)
    known[key] = value
    if len(known) > MOST_UNCOMMITTED:
        del known[next(iter(known))]


class _Attempt(msgspec.Struct, eq=False):
    """A task and its capture, and the future that waits for the result."""

    task: Task
    capture: Capture
    media_type: str | None
    resource: str
    result: Future[ArchiveResult]

    @property
    def body(self) -> tuple[str, str] | None:
        """The host and the SHA-256 of what came."""
        body = self.capture.body
        return (host(self.task.url), body.sha256) if body is not None else None


class _Known(msgspec.Struct):
    """The database's knowledge about some attempts."""

    watched: dict[str, Watched]
    shared: dict[tuple[str, str], int]
    trust: dict[str, tuple[int, int]]
    """Changes with each test."""


class Archiver(CommitHook):
    """Judge and store bodies for one worker, and commit the versions they are."""

    def __init__(
        self,
        writer: BlobWriter,
        session: Session,
        policy: VisitPolicy,
        *,
        key: Callable[[str], str],
        everything: bool,
        patience_ms: int | None = None,
    ) -> None:
        """`key` identifies a URL; `everything`: keep all that is crawled, not just what is watched.

        What stays suspicious for longer than `patience_ms` becomes a version; without it, it never does.
        """
        self._writer = writer
        self.is_elsewhere = writer.reader.packs.is_elsewhere
        self._session = session
        self._policy = policy
        self._key = key
        self._everything = everything
        self._patience_ms = patience_ms
        self._thread = SessionThread(session, "archive")
        self._waiting: list[_Attempt] = []
        self._settled: list[Prepared] = []
        self._unsettled = 0
        self._lock = threading.Lock()
        self._timetable = Timetable(session)
        self._shared = SharedBodies()

    def wants(self, task: Task) -> bool:
        """Tell if a task's document is to be stored."""
        kind = kind_of(task.tags)
        if task.crawl == WATCH:
            return kind not in {*AUXILIARY, SITEMAP}
        return self._everything and kind not in AUXILIARY

    async def keep(self, task: Task, capture: Capture, media_type: str | None) -> ArchiveResult:
        """Judges what came, and writes it down if it is to be kept."""
        name = resource_id(self._key(without_password(task.url)))
        attempt = _Attempt(task, capture, media_type, name, Future())
        with self._lock:
            self._unsettled += 1  # before it is prepared, or its pack might be sealed too early
            self._waiting.append(attempt)
            is_first = len(self._waiting) == 1
        if is_first:
            self._thread.submit(self._keep_waiting)
        try:
            return await wait_uncancelled(asyncio.wrap_future(attempt.result))
        except BaseException:
            if attempt.result.done() and attempt.result.exception() is None:
                self.settle(attempt.result.result())  # nobody will commit it
            else:
                self._end(None)
            raise

    @property
    def waits_for(self) -> str | None:  # type: ignore[override]
        """The store, in a sentence, while it cannot be reached."""
        return self._writer.reader.packs.waits_for

    def prepare(self, visits: Sequence[Visit]) -> None:
        """Sync the bodies of visits, or send them to the store."""
        if not self.is_elsewhere or any(each.archived for each in visits):
            self.sync()

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Write the rows of bodies, and then what refers to them."""
        found = [
            (each.archived, each.record.id)
            for each in batch.visits
            if isinstance(each.archived, ArchiveResult) and each.record
        ]
        insert_blobs(cursor, [each.prepared for each, _ in found if each.prepared is not None])
        record_results(cursor, found)

    def after(self, visit: Visit, *, committed: bool) -> None:
        """Let go of the body: its pack may be sealed."""
        if isinstance(visit.archived, ArchiveResult):
            self.settle(visit.archived)

    def sync(self) -> None:
        """Makes durable what was written; before the transactions that rely on it."""
        if self._unsettled:
            self._thread.wait(self._writer.sync)

    def settle(self, result: ArchiveResult) -> None:
        """The transaction has ended, whichever way, or there will be none. May be told twice."""
        if not result.is_settled:
            result.is_settled = True
            self._end(result.prepared)

    def _end(self, prepared: Prepared | None) -> None:
        with self._lock:
            self._unsettled -= 1
            if prepared is not None:
                self._settled.append(prepared)
            # Else it is let go with the next captures.
            is_last = self._settled and not self._unsettled
        if is_last:
            self._thread.submit(self._let_go)

    def _let_go(self) -> None:
        """Settle bodies that no longer wait for their rows, so that packs can be sealed."""
        with self._lock:
            settled, self._settled = self._settled, []
        if settled:
            self._writer.settle(settled)

    def close(self) -> None:
        """Lets go of the packs."""
        self._thread.wait(self._writer.close)
        self._thread.close()

    def _keep_waiting(self) -> None:
        """Store some of the waiting attempts and submit the rest, so that a sync need not wait for all."""
        with self._lock:
            some, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            if self._waiting:
                self._thread.submit(self._keep_waiting)
        try:
            self._let_go()
            self._keep(some)
        except BaseException as error:  # noqa: BLE001 (raised where it is waited for)
            for attempt in some:
                if not attempt.result.done():
                    attempt.result.set_exception(error)

    def _keep(self, attempts: list[_Attempt]) -> None:
        """Judges all, looks up what their bodies may be like, and writes one after another."""
        known = self._read(attempts)
        judged: list[tuple[_Attempt, ArchiveResult]] = []
        for attempt in attempts:
            try:
                judged.append((attempt, self._judge(attempt, known)))
            except Exception as error:  # noqa: BLE001 (the fault of one attempt is not that of the others)
                attempt.result.set_exception(error)
        chains = self._writer.chains(
            (body, each.watched.known.sha256) for _, each in judged if (body := each.stored_body) is not None
        )
        for attempt, result in judged:
            try:
                self._write(result, chains)
                attempt.result.set_result(result)
            except Exception as error:  # noqa: BLE001 (the same)
                attempt.result.set_exception(error)

    def _read(self, attempts: Sequence[_Attempt]) -> _Known:
        bodies = {attempt.body for attempt in attempts if attempt.body is not None}
        names = {attempt.resource for attempt in attempts}
        watched, shared = read_watched(self._session, names, bodies)
        tested = {each.host for each in watched.values() if each.hint_at is not None}
        trust = read_trust(self._session, sorted(tested)) if tested else {}
        return _Known(watched, shared, trust)

    def _judge(self, attempt: _Attempt, known: _Known) -> ArchiveResult:
        reached("body-fetched")
        capture, media_type = attempt.capture, attempt.media_type
        watched = known.watched.get(attempt.resource)
        is_new = watched is None
        watched = watched or _new(attempt)
        now = _stored(capture, media_type, watched)
        content = None if now is None else content_digest(now)
        stored = known.shared.get(attempt.body, 0) if attempt.body is not None else 0
        observed = self._observe(attempt, content, watched, stored)
        before = watched.known if now is None else self._comparable(watched)
        judgement = judge(observed, before, self._patience_ms)
        is_noise = judgement.meaning is AttemptMeaning.NOISE
        result = ArchiveResult(
            watched=watched,
            judgement=judgement,
            capture=capture,
            media_type=media_type,
            content=content,
            noise=self._noise(watched, now) if now is not None and is_noise else None,
            prepared=None,
            next=self._next(watched, judgement, capture),
            trust=_tested(watched, judgement, capture.ended_at, known.trust),
            is_new=is_new,
            is_watched=attempt.task.crawl == WATCH,
            now=self._session.now(),
        )
        if (body := result.stored_body) is not None:
            self._shared.add(watched.host, body.sha256, stored, watched.id)
        return result

    def _write(self, result: ArchiveResult, chains: Mapping[str, list[Blob]]) -> None:
        if (body := result.stored_body) is not None:
            result.prepared = self._writer.prepare(body, result.watched.known.sha256, chains)
            reached("blob-written")
            if body.data is not None and not result.is_suspect and result.media_type in (CSV, TSV):
                result.profile = _profile(body.data, result)

    def _observe(
        self, attempt: _Attempt, content: ContentDigest | None, watched: Watched, stored: int
    ) -> Observation:
        body = attempt.capture.body
        shared = 0
        if body is not None and body.sha256 != watched.known.sha256:
            shared = self._shared.count(watched.host, body.sha256, stored)
        error = _error(attempt, content)
        enough = (content.items or 0) >= _DATA[content.form] if content else attempt.media_type == PARQUET
        return Observation(
            outcome=attempt.capture.outcome,
            sha256=body.sha256 if body else None,
            size=body.size if body else 0,
            media_type=attempt.media_type,
            fingerprint=fingerprint_of(content),
            shared_by=shared,
            items=content.items if content else None,
            counted=COUNTED.get(content.form, "items") if content else "items",
            is_data=error is None and enough,
            error=error,
            at=attempt.capture.ended_at,
        )

    def _comparable(self, watched: Watched) -> KnownState:
        """Return the known state, with a new fingerprint where earlier rules made the old one.

        An archive without one was a tar archive to earlier rules, or could not be read.
        """
        known = watched.known
        has_none = known.fingerprint is None and form_of(known.media_type) is not Form.MEMBERS
        if has_none or is_comparable(known.fingerprint):
            return known
        with self._version_before(watched) as before:
            found = None if before is None else content_digest(before)
        items = found.items if found else None
        return msgspec.structs.replace(known, fingerprint=fingerprint_of(found), items=items)

    def _noise(self, watched: Watched, now: Stored) -> str:
        with self._version_before(watched) as before:
            found = None if before is None else noise_between(before, now)
        return "other bytes, the same content" if found is None else found.reason

    @contextmanager
    def _version_before(self, watched: Watched) -> Iterator[Stored | None]:
        """The current version; None if it cannot be read."""
        known = watched.known
        with tempfile.NamedTemporaryFile(prefix="tamias-") as file:
            try:
                file.writelines(self._writer.reader.pieces(known.sha256 or ""))
                file.flush()
            except (BlobMissing, BlobDamaged):
                yield None
            else:
                typed = type_with_charset(known.media_type, read_declared_type(self._session, watched.id))
                yield Stored(source=Path(file.name), media_type=typed, base=watched.url)

    def _expected(self, watched: Watched, capture: Capture) -> float | None:
        """Return the change interval that hints suggest, before anything was seen."""
        now = capture.ended_at
        hints = http_hints(capture.hops[-1].header, now) if capture.hops else ResourceHints()
        dates = [date for date in (hints.modified_at, watched.hint_at) if date is not None]
        latest = max(dates, default=None)
        hints = msgspec.structs.replace(hints, frequency=watched.frequency, modified_at=latest)
        return first_interval(hints, now, self._policy.terms)

    def _next(self, watched: Watched, judgement: Judgement, capture: Capture) -> NextVisit:
        history = unpack(watched.history)
        threshold, is_limited = self._timetable.of(watched.host)
        found = next_visit(
            history,
            SEEN[judgement.meaning],
            capture.ended_at,
            expected_days=self._expected(watched, capture) if history.visited_at is None else None,
            threshold=threshold,
            is_limited=is_limited,
            is_page=watched.known.media_type in PAGES,
            importance=watched.importance,
            policy=self._policy,
            chance=random.random(),
        )
        due = _by_user(watched, judgement, capture, found.due_ms)
        if capture.retry_after_ms is not None:
            due = max(due, capture.ended_at + capture.retry_after_ms)
        return msgspec.structs.replace(found, due_ms=due)


def _new(attempt: _Attempt) -> Watched:
    """A resource that is not known yet."""
    return Watched(
        id=attempt.resource, url=without_password(attempt.task.url), host=host(attempt.task.url),
        state="active", importance=1.0, versions=0, known=KnownState(), history=None, visited_at=None,
        fails=0, hint_at=None,
    )  # fmt: skip


def _tested(
    watched: Watched, judgement: Judgement, now: int, trust: dict[str, tuple[int, int]]
) -> Trust | None:
    """Return the new trust in the host's dates, if the visit tested one."""
    if watched.hint_at is None or watched.visited_at is None or not judgement.trusted:
        return None
    said = said_changed(watched.hint_at, watched.visited_at, now)
    after = Trust(*trust.get(watched.host, (0, 0))).after(said, judgement.meaning is AttemptMeaning.CHANGED)
    trust[watched.host] = (after.right, after.checked)
    return after


def _by_user(watched: Watched, judgement: Judgement, capture: Capture, due: int) -> int:
    """Return when the resource is due by the user's wishes; `due` is the time by the schedule."""
    if watched.state == "stopped":
        return NEVER
    if watched.wanted_at is not None and watched.wanted_at > capture.started_at:
        return capture.ended_at
    if watched.every is None:
        return due
    regular = capture.ended_at + watched.every
    return regular if judgement.trusted else min(due, regular)


def _profile(content: bytes, result: ArchiveResult) -> tuple[bytes, str | None] | None:
    """Return the profile of a small table while its bytes are in memory."""
    small_profile: Callable[..., tuple[bytes, str | None] | None] | None = find("profilers", "small")
    return small_profile and small_profile(
        content,
        media_type=result.media_type,
        declared_type=result.capture.declared_type,
        name=result.watched.url,
    )


def _error(attempt: _Attempt, content: ContentDigest | None) -> str | None:
    """Return why a response was refused, or the error message that it is in the type of the data."""
    body = attempt.capture.body
    if body is not None and attempt.capture.outcome is Outcome.REFUSED:
        return attempt.capture.reason
    if body is None or body.data is None or attempt.capture.outcome is not Outcome.OK:
        return None
    if content is not None and content.form is Form.STATEMENTS:  # `error:Fault a owl:Class .` is one
        return None
    return error_in(body.data, attempt.media_type)


def _stored(capture: Capture, media_type: str | None, watched: Watched) -> Stored | None:
    """Return the body, if it is to be compared with what is known."""
    body = capture.body
    if body is None or capture.outcome is not Outcome.OK or body.sha256 == watched.known.sha256:
        return None
    source = Path(body.path) if body.path is not None else body.data or b""
    typed = type_with_charset(media_type, capture.declared_type)
    return Stored(source=source, media_type=typed, base=watched.url)
