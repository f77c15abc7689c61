"""A portal whose captures are kept in batches leaves the rows and the bytes of one kept one by one."""

import asyncio
import hashlib
import itertools
import json
import threading
from contextlib import closing
from uuid import UUID

import pytest

from tamias.archive.blobs import BlobReader, BlobWriter, LocalPacks, insert_blobs
from tamias.crawl.revisit.timetable import policy_from
from tamias.features.archive import archiver as archiving
from tamias.features.archive.archiver import Archiver, record_results
from tamias.features.tables.chores import profile_some
from tamias.model.capture import Body, Capture, Hop, Outcome
from tamias.model.item import WATCH
from tamias.model.lease import Task
from tamias.model.resource import resource_id
from tamias.model.url import url_key
from tamias.settings import Settings

START = 1_767_225_600_000
HOUR = 3_600_000
PACK_BYTES = 10_000
ERROR = b"id,note\n1,the tables are back soon\n"
LOST = "no file is there"


def csv(*rows):
    return "".join(["id,value\n", *(f"{row}\n" for row in rows)]).encode()


def table(number, version=0):
    return csv(*(f"{row},{number * row + (version if row % 100 == 7 else 0)}" for row in range(400)))


def reordered(number):
    """Other bytes, the same rows."""
    return csv(*reversed([f"{row},{number * row}" for row in range(400)]))


FIRST = [
    ("/alone", table(1)),
    ("/shared-1", table(2)),
    ("/shared-2", table(2)),
    *((f"/error-{number}", ERROR) for number in range(4)),
    ("/broken", LOST),
    ("/error-4", ERROR),
    ("/twice", table(3)),
    ("/twice", table(3)),
    ("/changing", table(4)),
    ("/changing", table(4, 1)),
    ("/gone", 404),
    ("/failing", 500),
    ("/page", table(5)),
]
SECOND = [
    ("/alone", table(1, 9)),
    ("/shared-1", reordered(2)),
    ("/shared-2", table(6)),
    ("/broken", table(7)),
    ("/twice", table(3)),
    ("/changing", table(4)),
    ("/gone", table(8)),
    ("/failing", table(2)),
    ("/error-5", ERROR),
    ("/page", b"<!DOCTYPE html><p>Please sign in"),
]
ROUNDS = [FIRST, SECOND]
VISITED_TWICE = "/twice", "/changing"


class Kept:
    """An archive, and a worker's archiver at work in it."""

    def __init__(self, filled, monkeypatch):
        self.filled = filled
        session = filled.database.session()
        monkeypatch.setattr(session, "now", lambda: self.now)
        self.now = START
        self.writer = BlobWriter(LocalPacks(filled.data / "blobs"), session, pack_bytes=PACK_BYTES)
        policy = policy_from(Settings().schedule)
        self.archiver = Archiver(self.writer, session, policy, key=url_key, everything=False)
        self.numbers = itertools.count(1)

    def attempt(self, path, came):
        task = Task(uid=1, url=f"http://portal.example{path}", crawl=WATCH, depth=0, score=0.0)
        status = came if isinstance(came, int) else 200
        outcome = {200: Outcome.OK, 404: Outcome.GONE, 500: Outcome.FAILED}[status]
        kind = None if status != 200 else "text/html" if came[:1] == b"<" else "text/csv"
        hop = Hop(url=task.url, status=status, address="192.0.2.1", headers=(("Content-Type", "text/csv"),))
        body = body_of(came) if status == 200 else None
        capture = Capture(
            url=task.url, started_at=self.now, ended_at=self.now + 10, outcome=outcome, reason="",
            hops=(hop,), body=body,
        )  # fmt: skip
        return self.archiver.keep(task, capture, kind), str(UUID(int=next(self.numbers)))

    def commit(self, results):
        """As a committer does, of what was kept."""
        kept = [(result, capture) for result, capture in results if not isinstance(result, Exception)]
        self.archiver.sync()

        def record(cursor):
            insert_blobs(cursor, [result.prepared for result, _ in kept if result.prepared])
            record_results(cursor, kept)

        self.filled.session.transact(record)
        for result, _ in kept:
            self.archiver.settle(result)

    def found(self):
        """All rows as text without those of schedules, and the bodies of versions and suspects."""
        tables = {
            "version": "resource, number", "suspect": "resource, seen_at", "shared_body": "host, sha256",
            "resource": "resource",
        }  # fmt: skip
        rows = {
            name: [
                json.loads(row)
                for (row,) in self.filled.rows(
                    f"SELECT to_json(kept)::text FROM {name} AS kept ORDER BY {order}"
                )
            ]
            for name, order in tables.items()
        }
        for row in rows["resource"]:
            # Of two visits that are committed together, the schedule remembers the later one.
            if any(row["url"].endswith(path) for path in VISITED_TWICE):
                for column in ("history", "change_rate", "next_visit"):
                    row.pop(column)
        reader = BlobReader(LocalPacks(self.filled.data / "blobs"), self.filled.session)
        digests = [row["sha256"][2:] for name in ("version", "suspect") for row in rows[name]]
        known = [sha256.hex() for (sha256,) in self.filled.rows("SELECT sha256 FROM blob ORDER BY sha256")]
        return rows, {sha256: reader.read(sha256) for sha256 in digests}, known

    def close(self):
        self.archiver.close()


def body_of(came):
    if came == LOST:
        return Body(size=4, sha256=hashlib.sha256(b"lost").hexdigest(), path="/nowhere/at/all")
    return Body(size=len(came), sha256=hashlib.sha256(came).hexdigest(), data=came)


@pytest.fixture
def keep(filled, monkeypatch):
    """`keep(visit)` fills an empty archive by `visit(kept, attempts)`, round by round; what is found then."""
    monkeypatch.setattr(archiving.random, "random", lambda: 0.5)

    def filling(visit):
        filled.clear()
        with closing(Kept(filled, monkeypatch)) as kept:
            for number, attempts in enumerate(ROUNDS):
                kept.now = START + number * HOUR
                asyncio.run(visit(kept, attempts))
            return kept.found()

    return filling


@pytest.fixture
def batches(monkeypatch):
    """How many were read at once. The first read waits until all others have come."""
    sizes, all_there = [], threading.Event()
    read = archiving.read_watched

    def read_later(session, resources, bodies):
        assert all_there.wait(30)
        sizes.append(len(resources))
        return read(session, resources, bodies)

    monkeypatch.setattr(archiving, "read_watched", read_later)
    return sizes, all_there


async def one_by_one(kept, attempts):
    for path, came in attempts:
        keeping, capture = kept.attempt(path, came)
        (result,) = await asyncio.gather(keeping, return_exceptions=True)
        kept.commit([(result, capture)])


def test_batches_leave_the_rows_and_bytes_of_captures_one_by_one(keep, batches):
    sizes, all_there = batches

    async def together(kept, attempts):
        all_there.clear()
        pairs = [kept.attempt(path, came) for path, came in attempts]
        keeping = asyncio.gather(*(each for each, _ in pairs), return_exceptions=True)
        await asyncio.sleep(0.1)
        all_there.set()
        results = await keeping
        kept.commit(list(zip(results, (capture for _, capture in pairs), strict=True)))
        broken = [path for (path, _), result in zip(attempts, results, strict=True)
                  if isinstance(result, Exception)]  # fmt: skip
        assert broken == [path for path, came in attempts if came == LOST]

    in_batches = keep(together)
    assert max(sizes) > len(SECOND) // 2, sizes
    all_there.set()
    alone = keep(one_by_one)
    assert in_batches == alone
    rows, bodies, known = alone
    numbers = {row["resource"]: row["number"] for row in rows["version"]}
    versions = {path: numbers.get(resource_id(url_key(f"http://portal.example{path}")), 0)
                for path, _ in [*FIRST, *SECOND]}  # fmt: skip
    assert versions == {
        "/alone": 2, "/shared-1": 2, "/shared-2": 2, "/error-0": 1, "/error-1": 1, "/error-2": 1,
        "/error-3": 1, "/error-4": 0, "/error-5": 0, "/broken": 1, "/twice": 1, "/changing": 3, "/gone": 1,
        "/failing": 1, "/page": 1,
    }  # fmt: skip
    assert set(bodies) == set(known)
    assert all(hashlib.sha256(body).hexdigest() == sha256 for sha256, body in bodies.items())


def test_a_resource_that_has_a_body_again_is_not_another_resource(filled, monkeypatch):
    """One that flips between two bodies has each once, be they versions or suspicious."""
    filled.clear()
    with closing(Kept(filled, monkeypatch)) as kept:
        flips = [("/flips", table(1)), ("/flips", table(2))] * 4
        pages = [("/flips", b"<!DOCTYPE html><p>Please sign in"), ("/flips", b"<!DOCTYPE html><p>Soon")] * 4
        for number, each in enumerate(flips + pages):
            kept.now = START + number * HOUR
            asyncio.run(one_by_one(kept, [each]))
        assert filled.rows("SELECT count(*) FROM version") == [(8,)]
        assert filled.rows("SELECT count(*) FROM suspect") == [(8,)]
        assert filled.rows("SELECT resources FROM shared_body") == [(1,)] * 4


def test_the_same_commit_twice_is_one(keep):
    async def repeated(kept, attempts):
        for path, came in attempts:
            keeping, capture = kept.attempt(path, came)
            (result,) = await asyncio.gather(keeping, return_exceptions=True)
            if not isinstance(result, Exception):
                # As after a connection that was lost just behind the commit.
                kept.filled.session.transact(
                    lambda cursor, some=[(result, capture)]: (
                        insert_blobs(cursor, [each.prepared for each, _ in some if each.prepared]),
                        record_results(cursor, some),
                    )
                )
            kept.commit([(result, capture)])

    assert keep(repeated) == keep(one_by_one)


def test_only_what_waits_for_its_commit_is_remembered(filled, monkeypatch):
    """Also while the captures never stop, so that there is no moment at which nothing waits."""
    filled.clear()
    with closing(Kept(filled, monkeypatch)) as kept:

        async def visits():
            waiting = []
            for number in range(40):
                keeping, capture = kept.attempt(f"/{number}", table(number % 30))
                waiting.append((await keeping, capture))
                if len(waiting) > 3:
                    kept.commit([waiting.pop(0)])
            await kept.attempt("/last", table(99))[0]
            return waiting

        waiting = asyncio.run(visits())
        late = {result.prepared.sha256 for result, _ in waiting if result.prepared.blobs}
        last = hashlib.sha256(table(99)).hexdigest()
        assert set(kept.writer.table.pending) == {*late, last}
        kept.commit(waiting)
        states = dict(filled.rows("SELECT state, count(*) FROM pack GROUP BY state"))
        assert states == {"open": 1, "sealed": 4}
        reader = BlobReader(LocalPacks(filled.data / "blobs"), filled.session)
        assert [len(reader.read(hashlib.sha256(table(n)).hexdigest())) for n in range(30)] == [
            len(table(number)) for number in range(30)
        ]


def test_small_tables_are_profiled_at_the_capture_as_the_service_would(filled, monkeypatch):
    rows = "SELECT sha256, kind, profile, packed FROM profile ORDER BY sha256, kind"
    came = [
        ("/small", table(1)),
        ("/same", table(1)),
        ("/quoted", b'a,b\n1,"x ""y"" z"\n'),
        ("/unsure", b"a,b\n1.5,x\n-0.0,y\n"),
        ("/long", csv(*(f"{row},x" for row in range(2000)))),
        ("/page", b"<p>"),
    ]
    filled.clear()
    filled.run("DELETE FROM profile")

    async def keep_all(kept):
        attempts = [kept.attempt(*each) for each in came]
        kept.commit([(await result, capture) for result, capture in attempts])

    with closing(Kept(filled, monkeypatch)) as kept:
        asyncio.run(keep_all(kept))
    at_once = filled.rows(rows)
    small = sorted(hashlib.sha256(came[number][1]).digest() for number in (0, 2))
    kinds = "content", "table"
    assert [row[:2] for row in at_once] == [(digest, kind) for digest in small for kind in kinds]
    due = {digest for (digest,) in filled.rows("SELECT sha256 FROM profile_due")}
    assert due == {hashlib.sha256(body).digest() for _, body in came[3:]}
    filled.run("DELETE FROM profile")
    filled.run(
        "INSERT INTO profile_due (sha256, resource, media_type, captured_at)"
        " SELECT sha256, resource, media_type, captured_at FROM resource"
        " WHERE url LIKE '%%/small' OR url LIKE '%%/quoted'"
    )
    profile_some(filled.session, BlobReader(LocalPacks(filled.data / "blobs"), filled.session))
    assert [row for row in filled.rows(rows) if row[0] in small] == at_once
