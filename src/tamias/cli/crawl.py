"""`tamias crawl`: from seeds to an archive of quads, until nothing is left."""

from typing import TYPE_CHECKING, Any

import click

from tamias.cli.console.options import CommonOptions, common, printable, say_json, setting_options
from tamias.cli.console.progress import Display, summary
from tamias.model.errors import LimitReached, UsageError
from tamias.plugins import load

if TYPE_CHECKING:
    from tamias.crawl.plan.seed_outcomes import SeedState
    from tamias.crawl.store.progress import CrawlSnapshot
    from tamias.crawl.worker.supervisor import Supervisor

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
    from tamias.crawl.verbs.crawl_run import CrawlRun
    from tamias.crawl.verbs.seed_check import named_seeds, split_seeds

    def drive(supervisor: "Supervisor") -> "CrawlSnapshot":
        import asyncio

        return asyncio.run(supervisor.run_until_signal(Display(place).show))

    def tell(line: str) -> None:
        click.echo(printable(line), err=True)

    def note(line: str) -> None:
        if place.verbosity >= 0:
            tell(line)

    words = () if name is None else ("--crawl", name)
    run = CrawlRun(place, flags, name, drive=drive, tell=tell, note=note)
    try:
        if not dry_run:
            run.start_keeper()
        seeds, seed_files, imports = split_seeds(seeds, seed_files)
        named = run.check(named_seeds(seeds, seed_files))
        if dry_run:
            run.tell_skipped()
            load("crawl_options", "dry-run")(place, run.flags, named, name)
            return 0
        if recrawl:
            if again:
                raise UsageError("--again visits a crawl, --recrawl what is watched: use one of them")
            revisited = run.revisit(named)
            _tell_end(place, revisited, "--recrawl")
            return _exit_code(revisited)
        end = run.crawl(named, imports, again=again, in_service=in_service, strict=strict)
        if end is None:
            tell(f"handed over: '{place.command('serve')}' works on it")
            return 0
        _tell_end(place, end.snapshot, *words)
        for line in end.changed:
            click.echo(line, err=True)
        _tell_unfetched(end.unfetched)
        return 1 if end.unfetched else 3 if end.failed else _exit_code(end.snapshot)
    except KeyboardInterrupt:
        stored = f"'{place.command('crawl', *words)}' continues"
        advice = stored if run.is_resumable else "nothing was stored yet; run the same command again"
        click.echo(f"interrupted; {advice}", err=True)
        return 130
    finally:
        run.close()


def _exit_code(end: "CrawlSnapshot") -> int:
    from tamias.crawl.store.progress import Ended

    if end.ended is Ended.DONE and not end.trapped[1]:
        return 0
    return 130 if end.ended is Ended.INTERRUPTED else LimitReached.exit_code


def _tell_end(place: CommonOptions, end: "CrawlSnapshot", *words: str) -> None:
    if place.json:
        say_json(end)
    if place.verbosity >= 0:
        for line in summary(end, place, *words):
            click.echo(line, err=True)


def _tell_unfetched(seeds: list["SeedState"]) -> None:
    from tamias.model.url import without_password

    if seeds:
        click.echo("tamias: no seed could be fetched:", err=True)
        for seed in seeds:
            line = f"{without_password(seed.url)}: {seed.outcome.word}: {seed.reason}"
            click.echo(f"  {printable(line)}", err=True)
