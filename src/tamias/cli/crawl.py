"""`tamias crawl`: from seeds to an archive of quads, until nothing is left."""

import gc
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from tamias.cli.console.options import CommonOptions, common, printable, say_json, setting_options
from tamias.cli.console.progress import Display, summary
from tamias.cli.console.run_policy import RunPolicy, run_policy
from tamias.cli.import_seeds import SeedFile, named_seeds, put_seeds, split_seeds
from tamias.model.errors import ConfigError, LimitReached, TamiasError, UsageError
from tamias.model.item import Seed
from tamias.plugins import load, load_all
from tamias.settings import CONTACT_PAGE, Settings

if TYPE_CHECKING:
    from tamias.crawl.plan.pending_seeds import PendingSeeds
    from tamias.crawl.plan.seed_outcomes import SeedOutcome
    from tamias.crawl.store.progress import CrawlSnapshot
    from tamias.crawl.verbs.seed_check import SkippedSeeds
    from tamias.crawl.worker.fork_server import ForkServer
    from tamias.crawl.worker.supervisor import Supervisor
    from tamias.database.child_server import KeeperProcess
    from tamias.database.connect import Database, Session
    from tamias.database.embedded_server import Embedded

MANY_SEEDS = 100_000
"""Workers that are forks of this process would share their memory with it, until it changes."""
SETTINGS = (
    *(f"crawl.{name}" for name in ("preset", "depth", "max_urls", "max_time", "max_wait", "workers")),
    *("filters.scope", "filters.include", "filters.exclude", "fetch.delay", "fetch.concurrency"),
    *("permit.robots", "permit.allow_private", "crawl.sinks", "fetch.contact", "fetch.resolve"),
    *("frontier.require", "frontier.forbid", "crawl.requisites", "crawl.continuous", "crawl.budget"),
    *("crawl.new_share", "archive.store"),
)
"""The settings that have a flag."""


@click.command()
@click.argument("seeds", metavar="SEED...", nargs=-1)
@click.option(
    "--seeds",
    "seed_files",
    multiple=True,
    type=click.Path(),
    help="File of seeds, or -: one a line, CSV with a uri column, URLFrontier's JSON lines, WARC or CDX.",
)
@setting_options(*SETTINGS)
@click.option("--crawl", "name", help="Name of the crawl; several can share the same data. [default]")
@click.option(
    "--recrawl", is_flag=True, help="Revisit watched resources that are due; URLs you name are visited now."
)
@click.option(
    "--again", is_flag=True, help="Visit all URLs of a finished crawl once more, under its options."
)
@click.option(
    "--in-service", is_flag=True, help="Let the running 'tamias serve' do it; return when it is handed over."
)
@click.option("--strict", is_flag=True, help="Exit with 3 if some URLs failed permanently.")
@click.option("--dry-run", is_flag=True, help="Show what would be fetched, and why the rest is skipped.")
@common
def command(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions,
    seeds: tuple[str, ...],
    seed_files: tuple[str, ...],
    strict: bool,
    dry_run: bool,
    recrawl: bool,
    again: bool,
    name: str | None,
    in_service: bool,
    flags: dict[str, Any],
) -> int:
    """Crawls from the seeds until nothing is left, then ends. Run it again to continue where it stopped.

    The options belong to the crawl: what you do not name in a later run stays as it is.

    Example: tamias crawl https://example.org/data.ttl --depth 2 --contact https://example.org/about
    """
    if flags["crawl__sinks"]:
        from tamias.crawl.commit.deliver import checked

        flags["crawl__sinks"] = checked(flags["crawl__sinks"])
    stage = Stage(place, () if name is None else ("--crawl", name))
    try:
        if not dry_run:
            stage.start_keeper()
        seeds, seed_files, imports = split_seeds(seeds, seed_files)
        named = _check(place.settings(**flags).settings, named_seeds(seeds, seed_files), stage.skipped)
        if dry_run:
            _tell_skipped(stage)
            load("crawl_options", "dry-run")(place, flags, named, name)
            return 0
        _check_seeds(place, bool(named or imports), again=again, recrawl=recrawl)
        if recrawl:
            return _recrawl(place, flags, named, name, stage)
        return _crawl(
            place,
            flags,
            named,
            strict,
            name,
            again=again,
            imports=imports,
            in_service=in_service,
            stage=stage,
        )
    except KeyboardInterrupt:
        click.echo(f"interrupted; {stage.advice}", err=True)
        return 130
    finally:
        stage.close()


_STORING = frozenset({"archive", "warc"})
"""Sinks that store pages so that they can be shown."""


class Stage:
    """State of a run: what is to be said of it when it is interrupted, and what it leaves behind."""

    def __init__(self, place: CommonOptions, crawl: tuple[str, ...]) -> None:
        """`crawl`: the words that name it."""
        from tamias.crawl.verbs.seed_check import SkippedSeeds

        self._place = place
        self._continues = f"'{place.command('crawl', *crawl)}' continues"
        self.pending: Path | None = None
        """The file of the seeds of this run."""
        self._keeper: KeeperProcess | None = None
        self._use: Embedded | None = None
        self.workers: ForkServer | None = None
        """Not loaded to be closed: where loading was interrupted, Python cannot do it again."""
        self.advice = "nothing was stored yet; run the same command again"
        self.skipped = SkippedSeeds()

    def start_keeper(self) -> None:
        """The keeper of the database loads its modules while what was typed is checked."""
        from tamias.database.child_server import KeeperProcess
        from tamias.database.embedded_server import keeper_module

        if self._place.db is None and not self._is_up():
            self._keeper = KeeperProcess(keeper_module(), str(self._place.data.absolute()))

    def start_database(self, meanwhile: Callable[[], None]) -> None:
        """Begin with what takes longest, where there is no database; that it takes a while is said at once.

        Errors are met again by whoever connects, and told there.
        """
        from tamias.database.embedded_server import Embedded

        if self._place.db is not None:
            return
        if self._place.verbosity >= 0 and not self._is_up():
            click.echo("starting the database…", err=True)
        with suppress(TamiasError, OSError):
            self._use = Embedded(self._place.data)
            self._use.start(str(self._place.data.absolute()), self._keeper, meanwhile)

    def _is_up(self) -> bool:
        return (self._place.data / "pg" / "running.json").exists()

    def release_database(self) -> None:
        """Let go of it: others use it by now, or nobody will."""
        if self._use is not None:
            self._use.close()

    def keep(self, pending: "PendingSeeds") -> None:
        """Store the seeds, so that nothing loses them from now on."""
        from tamias.crawl.plan.pending_seeds import write_pending

        if pending.seeds:
            self.pending = write_pending(self._place.data, pending)
        self.advice = self._continues

    def stored(self) -> None:
        """Note that all that was named is in the frontier."""
        self.advice = self._continues
        if self.pending is not None:
            self.pending.unlink(missing_ok=True)

    def drop(self) -> None:
        """The run is refused: its seeds are not to be taken up later."""
        if self.pending is not None:
            self.pending.unlink(missing_ok=True)
            with suppress(OSError):  # others are pending, or the data directory is in use
                self.pending.parent.rmdir()
                self._place.data.rmdir()

    def close(self) -> None:
        """Return when nothing of the run is left running, unless others use the database."""
        from tamias.database.embedded_server import wait_until_unused

        if self.workers is not None:
            self.workers.close()
        if self._keeper is not None:
            self._keeper.close()
        self.release_database()
        if self._place.db is None:
            wait_until_unused(self._place.data)


def _check_seeds(place: CommonOptions, has_seeds: bool, *, again: bool, recrawl: bool) -> None:
    """Raise `UsageError` without seeds and a crawl to resume, or with seeds for a crawl to repeat."""
    from tamias.crawl.plan.pending_seeds import read_pending

    has_crawl = (place.data / "pg").is_dir() or bool(read_pending(place.data))
    if not (has_seeds or place.db or has_crawl):
        raise UsageError(
            "nothing to crawl: name a seed, such as 'tamias crawl https://example.org/data.ttl'; "
            f"there is no crawl in {place.data} to resume"
        )
    if again and (has_seeds or recrawl or not has_crawl):
        raise UsageError("--again visits what a crawl has visited before: name no seed, but --crawl NAME")


def _crawl(
    place: CommonOptions,
    flags: dict[str, Any],
    seeds: list[Seed],
    strict: bool,
    name: str | None,
    *,
    again: bool,
    imports: list[SeedFile],
    in_service: bool,
    stage: Stage,
) -> int:
    from tamias.crawl.plan.pending_seeds import PendingSeeds

    if not imports:
        stage.keep(PendingSeeds(seeds, flags, name))
    with closing(_start(place, seeds, stage)) as database:
        from tamias.crawl.store.progress import Ended
        from tamias.crawl.worker.supervisor import Supervisor
        from tamias.frontier.crawls import resume_run

        _take_pending(place, database, stage)
        try:
            crawl = _number(database, name)
            policy, seeds = _begin_run(
                place, database, flags, seeds, crawl, imports=imports, in_service=in_service, stage=stage
            )
            with closing(database.session()) as session:
                resume_run(session, crawl)
                since = session.now()
                if again:
                    _visit_again(session, policy.settings, crawl)
        except TamiasError:
            stage.drop()
            raise
        with closing(Supervisor(place.data, place.db, policy.settings, crawl=crawl)) as supervisor:
            _put_seeds(place, supervisor, seeds, stage)
            if in_service:
                click.echo(f"handed over: '{place.command('serve')}' works on it", err=True)
                return 0
            end = _run(place, supervisor)
            _hint_requisites(place, policy.settings, supervisor, since)
            done = end.ended is Ended.DONE
            unfetched = supervisor.unfetched_seeds(end) if done and not imports else []
            failed = strict and done and (stage.skipped.count or supervisor.failed_for_good()) > 0
        changed = load("comparisons", "changed_since")(database, place.data, since) if again else []
        if again:
            _follow_revisit(database, place.data, end)
    _tell_end(place, end, *(() if name is None else ("--crawl", name)))
    for line in changed:
        click.echo(line, err=True)
    _tell_unfetched(unfetched)
    return 1 if unfetched else 3 if failed else _exit_code(end)


def _hint_requisites(place: CommonOptions, settings: Settings, supervisor: "Supervisor", since: int) -> None:
    """Say that pages were stored without what they need to be shown, if so."""
    is_stored = not (settings.crawl.requisites or _STORING.isdisjoint(settings.crawl.sinks))
    if is_stored and place.verbosity >= 0 and supervisor.has_page(since):
        click.echo(
            "pages are stored without their images, styles and scripts; --requisites adds them", err=True
        )


def _put_seeds(place: CommonOptions, supervisor: "Supervisor", seeds: list[Seed], stage: Stage) -> None:
    """Put the seeds, and reopen URLs that wider options allow; print these, and skipped seeds."""
    supervisor.put_seeds(seeds)
    for each in supervisor.reopen_widened():
        if place.verbosity >= 0:
            click.echo(f"reopened {each}", err=True)
    _tell_skipped(stage)
    stage.stored()


def _visit_again(session: "Session", settings: Settings, crawl: int) -> None:
    """Make all URLs due that the crawl has visited. Raises `UsageError` where there are none."""
    from tamias.crawl.plan.admit import open_frontier
    from tamias.frontier.due import visit_again

    if not visit_again(session, open_frontier(session, settings), crawl):
        raise UsageError("this crawl has no visited URLs to visit again; 'tamias crawls' lists all crawls")


def _recrawl(
    place: CommonOptions, flags: dict[str, Any], seeds: list[Seed], name: str | None, stage: Stage
) -> int:
    """Visit what is watched. Requests are sent as the crawl sends them; it gets no option of this run."""
    with closing(_start(place, seeds, stage)) as database:
        from tamias.crawl.plan.policy import Until
        from tamias.crawl.worker.supervisor import Supervisor
        from tamias.model.item import WATCH

        crawl = run_policy(place, database, flags, [], _number(database, name)).settings
        settings = structs.replace(crawl, crawl=place.settings(**flags).settings.crawl)
        _warn(place, settings)
        _visit_now(database, settings, seeds)
        with closing(
            Supervisor(place.data, place.db, settings, until=Until.VISITED, crawl=WATCH)
        ) as supervisor:
            supervisor.put_seeds(())
            end = _run(place, supervisor)
        _follow_revisit(database, place.data, end)
    _tell_end(place, end, "--recrawl")
    return _exit_code(end)


def _follow_revisit(database: "Database", data: Path, end: "CrawlSnapshot") -> None:
    from tamias.crawl.store.progress import Ended

    for follow in load_all("revisits").values() if end.ended is Ended.DONE else ():
        follow(database, data)


def _start(place: CommonOptions, seeds: list[Seed], stage: Stage) -> "Database":
    stage.start_database(partial(_start_workers, seeds, stage))
    _start_workers(seeds, stage)  # unless that was done while it started
    return _open(place, stage)


def _begin_run(
    place: CommonOptions,
    database: "Database",
    flags: dict[str, Any],
    seeds: list[Seed],
    crawl: int,
    *,
    imports: Sequence[SeedFile] = (),
    in_service: bool = False,
    stage: Stage,
) -> tuple[RunPolicy, list[Seed]]:
    """Check the options of the run, and write them to the row of the crawl.

    Returns the options, and the seeds that they allow; those of files of other crawlers are put. Options stay
    as they are if anything is refused.
    """
    from tamias.crawl.plan.policy import write_policy
    from tamias.crawl.verbs.seed_check import usable_seeds
    from tamias.sinks.delivery import try_sink

    for sink in flags.get("crawl__sinks") or ():
        try_sink(sink)
    policy = run_policy(place, database, flags, seeds, crawl)
    seeds = usable_seeds(policy.settings, seeds, stage.skipped)
    if imports:
        put_seeds(place, database, policy.settings, policy.policy.seeds, crawl, imports, stage.skipped)
    _warn(place, policy.settings)
    if policy.changes and place.verbosity >= 0:
        click.echo(f"changed: {printable('; '.join(policy.changes))}", err=True)
    row = structs.replace(policy.policy, in_service=True) if in_service else policy.policy
    with closing(database.session()) as session:
        write_policy(session, row, crawl)
    return policy, seeds


def _run(place: CommonOptions, supervisor: "Supervisor") -> "CrawlSnapshot":
    import asyncio

    end = asyncio.run(supervisor.run_until_signal(Display(place).show))
    if supervisor.undelivered:
        wait = f"{supervisor.undelivered} documents still wait for their sinks; the next run continues"
        click.echo(wait, err=True)
    for refused in supervisor.refused_deliveries():
        click.echo(f"not delivered: {printable(refused)}", err=True)
    return end


def _exit_code(end: "CrawlSnapshot") -> int:
    from tamias.crawl.store.progress import Ended

    if end.ended is Ended.DONE and not end.trapped[1]:
        return 0
    return 130 if end.ended is Ended.INTERRUPTED else LimitReached.exit_code


def _start_workers(seeds: list[Seed], stage: Stage) -> None:
    """Load what this process and its workers need, once for all of them."""
    from tamias.crawl.worker.fork_server import DATABASE_WORKER, fork_server

    server = stage.workers = fork_server(DATABASE_WORKER)
    if len(seeds) > MANY_SEEDS:
        server.start()
        return
    gc.disable()  # no module is garbage, and to look for some is a tenth of the imports
    from tamias.crawl.worker import supervisor  # noqa: F401 (it has much in common with a worker)
    from tamias.crawl.worker.worker import database_worker, load_ahead, run_process

    load_ahead()
    server.start_as_fork(partial(run_process, database_worker))
    gc.enable()


def _open(place: CommonOptions, stage: Stage) -> "Database":
    """The database. Seeds of a run that it refuses are forgotten."""
    from tamias.database.connect import Database

    try:
        return Database(place.data, place.db, buckets=place.settings().settings.frontier.buckets)
    except TamiasError:
        stage.drop()
        raise
    finally:
        stage.release_database()


def _take_pending(place: CommonOptions, database: "Database", stage: Stage) -> None:
    """Put the seeds of earlier runs that were ended before they had come so far.

    What such a run may not do is reported, and does not keep this run from its own work.
    """
    from tamias.crawl.plan.admit import open_frontier, seed_items
    from tamias.crawl.plan.pending_seeds import read_pending
    from tamias.crawl.plan.policy import read_run
    from tamias.frontier.crawls import stop

    for path, pending in read_pending(place.data):
        if path == stage.pending:
            continue
        seeds = [structs.replace(seed, line=seed.line or "of an interrupted run") for seed in pending.seeds]
        try:
            crawl = _number(database, pending.crawl)
            policy, seeds = _begin_run(place, database, pending.flags, seeds, crawl, stage=stage)
        except (ConfigError, UsageError) as error:
            click.echo(f"an interrupted run is dropped: {printable(str(error))}", err=True)
            path.unlink(missing_ok=True)
            continue
        with closing(database.session()) as session:
            if not read_run(session, crawl)[1]:
                stop(session, crawl)  # its user interrupted its first run, and has not resumed it
            open_frontier(session, policy.settings).put(seed_items(policy.settings, seeds, crawl))
        path.unlink(missing_ok=True)


def _tell_skipped(stage: Stage) -> None:
    for line in stage.skipped.sentences():
        click.echo(printable(line), err=True)


def _tell_end(place: CommonOptions, end: "CrawlSnapshot", *words: str) -> None:
    if place.json:
        say_json(end)
    if place.verbosity >= 0:
        for line in summary(end, place, *words):
            click.echo(line, err=True)


def _tell_unfetched(seeds: list["SeedOutcome"]) -> None:
    from tamias.model.url import without_password

    if seeds:
        click.echo("tamias: no seed could be fetched:", err=True)
        for seed in seeds:
            line = f"{without_password(seed.url)}: {seed.outcome.word}: {seed.reason}"
            click.echo(f"  {printable(line)}", err=True)


def _visit_now(database: "Database", settings: Settings, seeds: list[Seed]) -> None:
    from tamias.crawl.plan.admit import Admission, open_frontier
    from tamias.crawl.revisit.watches import Watcher

    with closing(database.session()) as session:
        frontier = open_frontier(session, settings)
        unknown = Watcher(session, frontier, Admission(settings, ())).visit_now(seeds)
    if unknown:
        raise UsageError(f"not watched: {', '.join(unknown)}. Use 'tamias add' to watch them.")


def _number(database: "Database", name: str | None) -> int:
    from tamias.crawl.plan.policy import crawl_of

    with closing(database.session()) as session:
        return crawl_of(session, name)


def _check(settings: Settings, seeds: list[Seed], skipped: "SkippedSeeds") -> list[Seed]:
    """Check what was typed before anything is made; return the seeds that can be crawled."""
    from tamias.crawl.plan.fetch_options import http_options
    from tamias.crawl.verbs.seed_check import usable_seeds

    http_options(settings, Path())
    load("sinks", settings.sinks.segments)
    return usable_seeds(settings, seeds, skipped)


def _warn(place: CommonOptions, settings: Settings) -> None:
    if place.verbosity >= 0 and settings.fetch.contact == CONTACT_PAGE:
        click.echo("tamias: No contact set: site owners cannot reach you. Use --contact.", err=True)
