"""The SPARQL store while captures arrive: its lag and size, and what abandoned queries cost others."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from pyoxigraph import Store

from benchmarks.archive.captures import size_on_disk, tell_sizes
from benchmarks.serve.fill import Filled, fill
from tamias.archive.versions.resources import add_versions
from tamias.database.connect import Database, Session
from tamias.features.catalogue.catalogue import Catalogue, CatalogueFollower
from tamias.features.catalogue.errors import StoreError
from tamias.features.catalogue.store.local_store import RunningQuery
from tamias.features.catalogue.store.snapshots import NEXT, QUIET_SECONDS, open_newest, read_loaded, size_of
from tamias.features.dcat.terms import bases_of
from tamias.model.capture import new_capture_id
from tamias.model.resource import Version
from tamias.settings import ServeSettings

TARGETS = {"lag_p99_s": 5.0, "size_ratio": 1.3, "restart_s": 5.0}
_CROSS = "SELECT DISTINCT ?c ?f { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l } ORDER BY ?l"
_ABANDONED_AFTER = 0.5
_COMMIT_SECONDS = 0.1
_PAUSE_SECONDS = 0.02
_COMPACTION_SECONDS = 300.0
_DUE_SECONDS = QUIET_SECONDS + 30.0  # a compaction that has not begun by then is not due
_LEFT_SECONDS = 5.0
"""By then no process reads the files of before any more."""

Out = Callable[[str], object]


class Quantiles(msgspec.Struct, frozen=True):
    """Of many values."""

    count: int
    p50: float
    p99: float


def run(resources: int, versions: int, rate: float, seconds: float, out: Out = print) -> dict[str, Any]:
    """The report of one archive, made for it."""
    with TemporaryDirectory(prefix="tamias-catalogue-") as folder:
        data = Path(folder) / "data"
        with closing(Database(data)) as database:
            bench = _Bench(data, database, Filled(resources, resources * versions), out)
            report = bench.measure(rate, seconds)
    report["targets"] = TARGETS
    return report


class _Bench:
    def __init__(self, data: Path, database: Database, filled: Filled, out: Out) -> None:
        self._data = data
        self._store = data / "catalogue" / "store"
        self._database = database
        self._filled = filled
        self._out = out
        self._report: dict[str, Any] = {"resources": filled.datasets, "versions": filled.versions}

    def measure(self, rate: float, seconds: float) -> dict[str, Any]:
        fill(self._database, self._data, self._filled)
        with Catalogue(self._data, database=self._database) as catalogue:
            began = time.monotonic()
            self._round(catalogue)
            self._tell("filled_s", time.monotonic() - began)
            self._tell("statements", self._count())
            with self._following(catalogue):
                self._tell("sparql_alone", _asked(catalogue, self._filled, seconds / 4))
                self._measure_lag(catalogue, rate, seconds)
            self._round(catalogue)
            self._tell("statements_after", self._count())
            busy = size_on_disk(self._store)
            self._tell("compacted_s", self._wait_for_compaction())
            self._tell("bytes_after", size_on_disk(self._store))
            loaded = self._load_again()
            self._tell("bulk_bytes", loaded)
            self._tell("size_ratio_busy", busy / loaded)
            self._tell("size_ratio", size_on_disk(self._store) / loaded)
            with self._following(catalogue):
                self._measure_lag_after_compaction(catalogue, rate, seconds)
            self._tell("bytes_after_updates", size_on_disk(self._store))
            os.kill(catalogue.local.running().keeper_pid, signal.SIGKILL)  # type: ignore[union-attr]
        self._tell("restart_s", self._restart())
        with closing(self._database.session()) as session:
            self._report["sizes"] = tell_sizes(self._data, session, self._filled.versions, self._out)
        return self._report

    def _measure_lag(self, catalogue: Catalogue, rate: float, seconds: float) -> None:
        captures = _Captures(self._database, self._filled, rate)
        written = _written(catalogue)
        with captures.arriving():
            lag = _lag(catalogue, captures, seconds / 2)
            self._tell("sparql_beside_captures", _asked(catalogue, self._filled, seconds / 4))
            with _abandoning(catalogue) as abandoned:
                beside = _lag(catalogue, captures, seconds / 4)
                self._tell("sparql_beside_abandoned", _asked(catalogue, self._filled, seconds / 4))
        self._tell("captures", captures.committed)
        self._tell("captures_a_second", captures.committed / captures.seconds)
        self._tell("lag_s", _quantiles(lag))
        self._tell("lag_beside_abandoned_s", _quantiles(beside))
        self._tell("abandoned_queries", abandoned[0])
        self._tell("bytes_written_a_capture", (_written(catalogue) - written) / max(1, captures.committed))

    def _measure_lag_after_compaction(self, catalogue: Catalogue, rate: float, seconds: float) -> None:
        """RocksDB merges the whole store once more then, beside what is written."""
        captures, written = _Captures(self._database, self._filled, rate), _written(catalogue)
        with captures.arriving():
            self._tell("lag_after_compaction_s", _quantiles(_lag(catalogue, captures, seconds)))
        each = (_written(catalogue) - written) / max(1, captures.committed)
        self._tell("bytes_written_after_compaction", each)

    def _round(self, catalogue: Catalogue) -> None:
        with (
            closing(self._database.session()) as session,
            closing(catalogue.refresher(session, bases_of(ServeSettings()))) as refresher,
        ):
            refresher.round()

    @contextmanager
    def _following(self, catalogue: Catalogue) -> Iterator[None]:
        following = CatalogueFollower(catalogue, self._database, bases_of(ServeSettings()))
        following.start()
        try:
            yield
        finally:
            following.close()

    def _restart(self) -> float:
        """From the start of a keeper after a kill to the first answer."""
        began = time.monotonic()
        with Catalogue(self._data, database=self._database) as catalogue:
            _ask(catalogue, _point(self._filled.id(1)))
            return time.monotonic() - began

    def _wait_for_compaction(self) -> float | str:
        """Until the store is written anew, as it is when it is quiet and too large."""
        began, loaded = time.monotonic(), read_loaded(self._store)
        while read_loaded(self._store) == loaded and time.monotonic() - began < _COMPACTION_SECONDS:
            if time.monotonic() - began > _DUE_SECONDS and not (self._store / NEXT).exists():
                return "not due"
            time.sleep(1.0)
        took = time.monotonic() - began
        time.sleep(_LEFT_SECONDS)
        return took

    def _count(self) -> int:
        with closing(open_newest(self._store)) as snapshot:
            return len(snapshot.store)

    def _load_again(self) -> int:
        """Bytes of a store that the same statements were just loaded into, before its files are merged."""
        with TemporaryDirectory(dir=self._data) as folder, closing(open_newest(self._store)) as snapshot:
            store = Store(folder)
            store.bulk_extend(snapshot.store)
            return size_of(Path(folder))

    def _tell(self, name: str, value: Any) -> None:
        self._report[name] = msgspec.to_builtins(value)
        said = f"{value:,.3f}" if isinstance(value, float) else value
        if isinstance(value, Quantiles):
            said = f"p50 {value.p50:.3f} s, p99 {value.p99:.3f} s of {value.count}"
        self._out(f"{name:<26} {said}")


class _Captures:
    """New versions of resources at random, so many a second."""

    def __init__(self, database: Database, filled: Filled, rate: float) -> None:
        self._database = database
        self._filled = filled
        self._rate = rate
        self._random = Random(1)
        self._ending = threading.Event()
        self.committed = 0
        self.seconds = 0.0
        self.latest: tuple[str, int, float] | None = None
        """A resource, its newest version, and when that was committed."""

    @contextmanager
    def arriving(self) -> Iterator[None]:
        thread = threading.Thread(target=self._arrive)
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join()

    def _arrive(self) -> None:
        began = time.monotonic()
        with closing(self._database.session()) as session:
            bodies = [row[0].hex() for row in session.fetch_all(b"SELECT sha256 FROM blob")]
            while not self._ending.wait(_PAUSE_SECONDS):
                due = int((time.monotonic() - began) * self._rate) - self.committed
                if due >= self._rate * _COMMIT_SECONDS:
                    self._commit(session, min(due, self._filled.datasets), bodies)
        self.seconds = time.monotonic() - began

    def _commit(self, session: Session, count: int, bodies: list[str]) -> None:
        now = session.now()
        numbers = self._random.sample(range(self._filled.datasets), count)
        names = [self._filled.id(number) for number in numbers]
        new = [_version(name, self._random.choice(bodies), now) for name in names]
        session.transact(lambda cursor: add_versions(cursor, new))
        row = session.fetch_one(b"SELECT versions FROM resource WHERE resource = %s", [names[0]])  # type: ignore[arg-type]
        assert row is not None
        self.latest = names[0], row[0], time.monotonic()
        self.committed += count


def _version(resource: str, sha256: str, now: int) -> Version:
    return Version(
        resource=resource, captured_at=now, sha256=sha256, byte_size=1000, media_type="text/csv",
        declared_type="text/csv", fingerprint=None, noise=None, capture=str(new_capture_id(now)),
    )  # fmt: skip


def _lag(catalogue: Catalogue, captures: _Captures, seconds: float) -> list[float]:
    """From the commit of one capture after another until a query finds it."""
    bases, found, until = bases_of(ServeSettings()), [], time.monotonic() + seconds
    looked_at = None
    while time.monotonic() < until:
        if captures.latest is None or captures.latest == looked_at:  # each is looked for once
            time.sleep(_PAUSE_SECONDS)
            continue
        looked_at = resource, number, committed = captures.latest
        iri = bases.version(resource, number).value
        while b"true" not in _ask(catalogue, f"ASK {{ <{iri}> dcat:version ?number }}"):
            time.sleep(_PAUSE_SECONDS)
        found.append(time.monotonic() - committed)
    return found


def _asked(catalogue: Catalogue, filled: Filled, seconds: float) -> Quantiles:
    """How long the versions of one dataset after another take."""
    random, found, until = Random(2), [], time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        _ask(catalogue, _point(filled.id(random.randrange(filled.datasets))))
        found.append(time.monotonic() - began)
    return _quantiles(found)


def _point(resource: str) -> str:
    node = bases_of(ServeSettings()).dataset(resource).value
    return f"SELECT ?version ?issued {{ <{node}> dcat:hasVersion ?version . ?version dct:issued ?issued }}"


def _ask(catalogue: Catalogue, query: str) -> bytes:
    with catalogue.ask(query, "text/csv").content as content:
        return content.read()


@contextmanager
def _abandoning(catalogue: Catalogue) -> Iterator[list[int]]:
    """Somebody asks for a cross product and leaves, again and again; how often is counted."""
    ending, count = threading.Event(), [0]

    def abandon() -> None:
        while not ending.is_set():
            asking = RunningQuery()
            timer = threading.Timer(_ABANDONED_AFTER, asking.give_up)
            timer.start()
            with suppress(StoreError):
                catalogue.ask(_CROSS, "text/csv", None, asking)
            timer.join()
            count[0] += 1

    thread = threading.Thread(target=abandon)
    thread.start()
    try:
        yield count
    finally:
        ending.set()
        thread.join()


def _written(catalogue: Catalogue) -> int:
    """Bytes that the processes of the store have written to disk."""
    assert catalogue.local is not None
    keeper = catalogue.local.running().keeper_pid
    total = 0
    for pid in Path(f"/proc/{keeper}/task/{keeper}/children").read_text(encoding="ascii").split():
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))
    return total


def _quantiles(values: list[float]) -> Quantiles:
    ordered = sorted(values) or [float("nan")]
    return Quantiles(len(values), ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)])
