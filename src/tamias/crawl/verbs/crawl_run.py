"""Run a crawl once, from what a user named to its end: what `tamias crawl` and `tamias.crawl` do.

Modules that take long to load are imported where they are needed: the database starts meanwhile.
"""

import gc
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from tamias.crawl.verbs.run_policy import RunPlace, RunPolicy, run_policy
from tamias.crawl.verbs.seed_check import SeedFile, SkippedSeeds, usable_seeds
from tamias.model.errors import ConfigError, TamiasError, UsageError
from tamias.model.item import Seed
from tamias.plugins import load, load_all
from tamias.settings import CONTACT_PAGE, Settings

if TYPE_CHECKING:
    from tamias.crawl.plan.seed_outcomes import SeedState
    from tamias.crawl.store.progress import CrawlSnapshot
    from tamias.crawl.worker.fork_server import ForkServer
    from tamias.crawl.worker.supervisor import Supervisor
    from tamias.database.child_server import KeeperProcess
    from tamias.database.connect import Database, Session
    from tamias.database.embedded_server import Embedded

MANY_SEEDS = 100_000
"""Workers that are forks of this process would share their memory with it, until it changes."""
_STORING = frozenset({"archive", "warc"})
"""Sinks that store pages so that they can be shown."""

Tell = Callable[[str], None]


class RunEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run."""

    snapshot: "CrawlSnapshot"
    unfetched: list["SeedState"] = []
    """The seeds, where not one of them could be fetched."""
    failed: bool = False
    """Whether URLs failed for good, or seeds were skipped."""
    changed: list[str] = []
    """What another visit of a finished crawl found changed, a line each."""


class CrawlRun:
    """A run of a crawl: its place and options, and what it leaves behind when it is interrupted."""

    def __init__(
        self,
        place: RunPlace,
        flags: dict[str, Any],
        name: str | None = None,
        *,
        drive: "Callable[[Supervisor], CrawlSnapshot]",
        tell: Tell,
        note: Tell,
    ) -> None:
        """`drive` runs a supervisor to its end. `tell` is for what went wrong, `note` for what was done."""
        if flags.get("crawl__sinks"):
            from tamias.crawl.commit.deliver import checked

            flags = {**flags, "crawl__sinks": checked(flags["crawl__sinks"])}
        self._place, self.flags, self._name = place, flags, name
        self._drive, self._tell, self._note = drive, tell, note
        self._pending: Path | None = None
        """The file of the seeds of this run."""
        self._keeper: KeeperProcess | None = None
        self._use: Embedded | None = None
        self._workers: ForkServer | None = None
        """Not loaded to be closed: where loading was interrupted, Python cannot do it again."""
        self.is_resumable = False
        """Whether something is stored that a later run continues."""
        self.skipped = SkippedSeeds()

    def start_keeper(self) -> None:
        """The keeper of the database loads its modules while what was typed is checked."""
        from tamias.database.child_server import KeeperProcess
        from tamias.database.embedded_server import keeper_module

        if self._place.db is None and not self._is_up():
            self._keeper = KeeperProcess(keeper_module(), str(self._place.data.absolute()))

    def check(self, seeds: list[Seed]) -> list[Seed]:
        """Check what was named before anything is made; return the seeds that can be crawled."""
        return check_seeds(self._place.settings(**self.flags).settings, seeds, self.skipped)

    def crawl(
        self,
        seeds: list[Seed],
        imports: Sequence[SeedFile] = (),
        *,
        again: bool = False,
        in_service: bool = False,
        strict: bool = False,
    ) -> RunEnd | None:
        """Crawl from the seeds, or resume; None where it was handed over to the service.

        Only where it is `strict` are URLs that failed for good counted, which takes a while.

        Raises `UsageError` without seeds and a crawl to resume, or with seeds for a crawl to visit `again`.
        """
        from tamias.crawl.plan.pending_seeds import PendingSeeds, write_pending

        self._check_use(bool(seeds or imports), again=again)
        if seeds and not imports:  # stored, so that nothing loses them from now on
            self._pending = write_pending(self._place.data, PendingSeeds(seeds, self.flags, self._name))
        self.is_resumable = not imports
        with closing(self._start(seeds)) as database:
            from tamias.crawl.store.progress import Ended
            from tamias.crawl.worker.supervisor import Supervisor
            from tamias.frontier.crawls import resume_run

            self._take_pending(database)
            try:
                crawl = _number(database, self._name)
                policy, seeds = self._begin(
                    database, self.flags, seeds, crawl, imports, in_service=in_service
                )
                with closing(database.session()) as session:
                    resume_run(session, crawl)
                    since = session.now()
                    if again:
                        _visit_again(session, policy.settings, crawl)
            except TamiasError:
                self._drop()
                raise
            place = self._place
            with closing(Supervisor(place.data, place.db, policy.settings, crawl=crawl)) as supervisor:
                supervisor.put_seeds(seeds)
                for each in supervisor.reopen_widened():
                    self._note(f"reopened {each}")
                self.tell_skipped()
                self.is_resumable = True
                if self._pending is not None:
                    self._pending.unlink(missing_ok=True)
                if in_service:
                    return None
                end = self._run(supervisor)
                self._hint_requisites(policy.settings, supervisor, since)
                changed: list[str] = []
                if again:
                    self._follow_revisit(database, end)
                    changed = load("comparisons", "changed_since")(database, place.data, since)
                done = end.ended is Ended.DONE
                return RunEnd(
                    snapshot=end,
                    unfetched=supervisor.unfetched_seeds(end) if done and not imports else [],
                    failed=strict and done and (self.skipped.count or supervisor.failed_for_good()) > 0,
                    changed=changed,
                )

    def revisit(self, seeds: list[Seed]) -> "CrawlSnapshot":
        """Visit what is watched: what is due, and the seeds now.

        Requests are sent as the crawl sends them; it gets no option of this run.
        """
        self._check_use(bool(seeds), again=False)
        with closing(self._start(seeds)) as database:
            from tamias.crawl.plan.policy import Until
            from tamias.crawl.worker.supervisor import Supervisor
            from tamias.model.item import WATCH

            place, flags = self._place, self.flags
            crawl = run_policy(place, database, flags, [], _number(database, self._name)).settings
            settings = structs.replace(crawl, crawl=place.settings(**flags).settings.crawl)
            self._warn(settings)
            _visit_now(database, settings, seeds)
            with closing(
                Supervisor(place.data, place.db, settings, until=Until.VISITED, crawl=WATCH)
            ) as supervisor:
                supervisor.put_seeds(())
                end = self._run(supervisor)
            self._follow_revisit(database, end)
            return end

    def close(self) -> None:
        """Return when nothing of the run is left running, unless others use the database."""
        from tamias.database.embedded_server import wait_until_unused

        if self._workers is not None:
            self._workers.close()
        if self._keeper is not None:
            self._keeper.close()
        self._release_database()
        if self._place.db is None:
            wait_until_unused(self._place.data)

    def tell_skipped(self) -> None:
        """Tell which seeds are skipped."""
        for line in self.skipped.sentences():
            self._tell(line)

    def _check_use(self, has_seeds: bool, *, again: bool) -> None:
        from tamias.crawl.plan.pending_seeds import read_pending

        data = self._place.data
        has_crawl = (data / "pg").is_dir() or bool(read_pending(data))
        if not (has_seeds or self._place.db or has_crawl):
            raise UsageError(
                "nothing to crawl: name a seed, such as 'tamias crawl https://example.org/data.ttl'; "
                f"there is no crawl in {data} to resume"
            )
        if again and (has_seeds or not has_crawl):
            raise UsageError("--again visits what a crawl has visited before: name no seed, but --crawl NAME")

    def _start(self, seeds: list[Seed]) -> "Database":
        """Start the database, and meanwhile what the workers need."""
        start_workers = partial(self._start_workers, seeds)
        self._start_database(start_workers)
        start_workers()  # unless that was done while it started
        from tamias.database.connect import Database

        place = self._place
        try:
            return Database(place.data, place.db, buckets=place.settings().settings.frontier.buckets)
        except TamiasError:
            self._drop()
            raise
        finally:
            self._release_database()

    def _start_database(self, meanwhile: Callable[[], None]) -> None:
        """Begin with what takes longest, where there is no database; that it takes a while is said at once.

        Errors are met again by whoever connects, and told there.
        """
        from tamias.database.embedded_server import Embedded

        if self._place.db is not None:
            return
        if not self._is_up():
            self._note("starting the database…")
        with suppress(TamiasError, OSError):
            self._use = Embedded(self._place.data)
            self._use.start(str(self._place.data.absolute()), self._keeper, meanwhile)

    def _is_up(self) -> bool:
        return (self._place.data / "pg" / "running.json").exists()

    def _release_database(self) -> None:
        """Let go of it: others use it by now, or nobody will."""
        if self._use is not None:
            self._use.close()

    def _start_workers(self, seeds: list[Seed]) -> None:
        """Load what this process and its workers need, once for all of them."""
        from tamias.crawl.worker.fork_server import DATABASE_WORKER, fork_server

        server = self._workers = fork_server(DATABASE_WORKER)
        if len(seeds) > MANY_SEEDS:
            server.start()
            return
        gc.disable()  # no module is garbage, and to look for some is a tenth of the imports
        from tamias.crawl.worker import supervisor  # noqa: F401 (it has much in common with a worker)
        from tamias.crawl.worker.worker import database_worker, load_ahead, run_process

        load_ahead()
        server.start_as_fork(partial(run_process, database_worker))
        gc.enable()

    def _drop(self) -> None:
        """The run is refused: its seeds are not to be taken up later."""
        if self._pending is not None:
            self._pending.unlink(missing_ok=True)
            with suppress(OSError):  # others are pending, or the data directory is in use
                self._pending.parent.rmdir()
                self._place.data.rmdir()

    def _begin(
        self,
        database: "Database",
        flags: dict[str, Any],
        seeds: list[Seed],
        crawl: int,
        imports: Sequence[SeedFile] = (),
        *,
        in_service: bool = False,
    ) -> tuple[RunPolicy, list[Seed]]:
        """Check the options of the run, and write them to the row of the crawl.

        Returns the options, and the seeds that they allow; those of files of other crawlers are put. Options
        stay as they are if anything is refused.
        """
        from tamias.crawl.plan.policy import write_policy
        from tamias.sinks.delivery import try_sink

        for sink in flags.get("crawl__sinks") or ():
            try_sink(sink)
        policy = run_policy(self._place, database, flags, seeds, crawl)
        seeds = usable_seeds(policy.settings, seeds, self.skipped)
        if imports:
            put, near = load("crawl_options", "import-seeds"), policy.policy.seeds
            with closing(database.session()) as session:
                done = put(session, policy.settings, near, crawl, imports, self.skipped)
            self._note(f"imported seeds: {done.new:,} new, {done.known:,} known")
        self._warn(policy.settings)
        if policy.changes:
            self._note(f"changed: {'; '.join(policy.changes)}")
        row = structs.replace(policy.policy, in_service=True) if in_service else policy.policy
        with closing(database.session()) as session:
            write_policy(session, row, crawl)
        return policy, seeds

    def _run(self, supervisor: "Supervisor") -> "CrawlSnapshot":
        end = self._drive(supervisor)
        if supervisor.undelivered:
            self._tell(
                f"{supervisor.undelivered} documents still wait for their sinks; the next run continues"
            )
        for refused in supervisor.refused_deliveries():
            self._tell(f"not delivered: {refused}")
        return end

    def _hint_requisites(self, settings: Settings, supervisor: "Supervisor", since: int) -> None:
        """Say that pages were stored without what they need to be shown, if so."""
        is_stored = not (settings.crawl.requisites or _STORING.isdisjoint(settings.crawl.sinks))
        if is_stored and supervisor.has_page(since):
            self._note("pages are stored without their images, styles and scripts; --requisites adds them")

    def _follow_revisit(self, database: "Database", end: "CrawlSnapshot") -> None:
        from tamias.crawl.store.progress import Ended

        for follow in load_all("revisits").values() if end.ended is Ended.DONE else ():
            follow(database, self._place.data)

    def _take_pending(self, database: "Database") -> None:
        """Put the seeds of earlier runs that were ended before they had come so far.

        What such a run may not do is reported, and does not keep this run from its own work.
        """
        from tamias.crawl.plan.admit import open_frontier, seed_items
        from tamias.crawl.plan.pending_seeds import read_pending
        from tamias.crawl.plan.policy import read_run
        from tamias.frontier.crawls import stop

        for path, pending in read_pending(self._place.data):
            if path == self._pending:
                continue
            seeds = [
                structs.replace(seed, line=seed.line or "of an interrupted run") for seed in pending.seeds
            ]
            try:
                crawl = _number(database, pending.crawl)
                policy, seeds = self._begin(database, pending.flags, seeds, crawl)
            except (ConfigError, UsageError) as error:
                self._tell(f"an interrupted run is dropped: {error}")
                path.unlink(missing_ok=True)
                continue
            with closing(database.session()) as session:
                if not read_run(session, crawl)[1]:
                    stop(session, crawl)  # its user interrupted its first run, and has not resumed it
                open_frontier(session, policy.settings).put(seed_items(policy.settings, seeds, crawl))
            path.unlink(missing_ok=True)

    def _warn(self, settings: Settings) -> None:
        if settings.fetch.contact == CONTACT_PAGE:
            self._note("tamias: No contact set: site owners cannot reach you. Use --contact.")


def _visit_again(session: "Session", settings: Settings, crawl: int) -> None:
    from tamias.crawl.plan.admit import open_frontier
    from tamias.frontier.due import visit_again

    if not visit_again(session, open_frontier(session, settings), crawl):
        raise UsageError("this crawl has no visited URLs to visit again; 'tamias crawls' lists all crawls")


def _number(database: "Database", name: str | None) -> int:
    from tamias.crawl.plan.policy import crawl_of

    with closing(database.session()) as session:
        return crawl_of(session, name)


def check_seeds(settings: Settings, seeds: list[Seed], skipped: SkippedSeeds) -> list[Seed]:
    """Check options and seeds without the database; return the seeds that can be crawled."""
    from tamias.crawl.plan.fetch_options import http_options

    http_options(settings, Path())
    load("sinks", settings.sinks.segments)
    return usable_seeds(settings, seeds, skipped)


def _visit_now(database: "Database", settings: Settings, seeds: list[Seed]) -> None:
    """Make watched resources due. Raises `UsageError` for others."""
    from tamias.crawl.plan.admit import Admission, open_frontier
    from tamias.crawl.revisit.watches import Watcher

    with closing(database.session()) as session:
        frontier = open_frontier(session, settings)
        unknown = Watcher(session, frontier, Admission(settings, ())).visit_now(seeds)
    if unknown:
        raise UsageError(f"not watched: {', '.join(unknown)}. Use 'tamias add' to watch them.")
