"""`tamias crawl`: from seeds to an archive of quads, until nothing is left."""

import asyncio
from pathlib import Path

import click

from tamias.cli.common import Place, common, say_json
from tamias.cli.progress import Display, summary
from tamias.model.errors import UsageError
from tamias.settings import CONTACT_PAGE, Resolved

SCOPES = click.Choice(["any", "host", "domain", "prefix"])


@click.command()
@click.argument("seeds", metavar="SEED...", nargs=-1)
@click.option(
    "--seeds",
    "seed_files",
    multiple=True,
    type=click.Path(),
    help="File of seeds: one a line, or CSV with a uri column.",
)
@click.option("--depth", type=click.IntRange(min=0), help="Follow links at most this many steps.")
@click.option("--max-urls", type=click.IntRange(min=1), help="Stop after this many URLs.")
@click.option("--max-time", type=click.FloatRange(min=0), help="Stop after this many seconds.")
@click.option(
    "--max-wait", type=click.FloatRange(min=0), help="Longest wait for hosts that asked for a pause. [600]"
)
@click.option("--scope", type=SCOPES, help="How far from the seeds links may lead. [any]")
@click.option("--include", multiple=True, help="Only URLs that match this regular expression.")
@click.option("--exclude", multiple=True, help="No URLs that match this regular expression.")
@click.option(
    "--delay", type=click.FloatRange(min=0), help="Least seconds between two requests to one queue. [1]"
)
@click.option("--no-robots", is_flag=True, help="Do not ask robots.txt.")
@click.option("--allow-private", is_flag=True, help="Private and loopback addresses may be fetched.")
@click.option("--workers", type=click.IntRange(min=1), help="Worker processes. [one for each core]")
@click.option("--concurrency", type=click.IntRange(min=1), help="Requests at once in each worker. [256]")
@click.option("--contact", help="Page or address about you, sent with every request.")
@click.option("--resolve", multiple=True, metavar="HOST:ADDRESS", help="Use this address for the host.")
@click.option("--strict", is_flag=True, help="Exit with 3 if some URLs failed for good.")
@click.option("--dry-run", is_flag=True, help="Say what would be fetched first, and why not what would not.")
@common
def command(
    place: Place,
    seeds: tuple[str, ...],
    seed_files: tuple[str, ...],
    strict: bool,
    dry_run: bool,
    **words: object,
) -> int:
    """Crawls from the seeds until nothing is left, then ends. Run again, it goes on where it stopped.

    Example: tamias crawl https://example.org/data.ttl --depth 2 --contact https://example.org/about
    """
    resolved = place.settings(**_flags(words))
    addresses = _addresses(seeds, seed_files)
    if dry_run:
        from tamias.crawl.dry_run import dry_run as look

        for line in asyncio.run(look(resolved.settings, addresses)):
            click.echo(line)
        return 0
    if not addresses and not (place.db or (place.data / "pg").is_dir()):
        raise UsageError(
            f"nothing to crawl: name a seed, or a --data with a crawl to go on with (not {place.data})"
        )
    _warn(resolved)
    return _crawl(place, resolved, addresses, strict)


def _crawl(place: Place, resolved: Resolved, seeds: list[str], strict: bool) -> int:
    from tamias.crawl.supervisor import Ended, Supervisor

    supervisor = Supervisor(place.data, place.db, resolved.settings, seeds)
    display = Display(place)
    try:
        supervisor.put_seeds(seeds)
        end = asyncio.run(supervisor.run(display.show))
    finally:
        display.close()
        supervisor.close()
    if place.json:
        say_json(end)
    for line in summary(end, place.data):
        click.echo(line, err=True)
    codes = {Ended.DONE: 0, Ended.LIMIT: 5, Ended.WAITING: 5, Ended.INTERRUPTED: 130}
    failed_for_good = strict and end.outcomes.get("failed", 0) > 0
    assert end.ended is not None
    return codes[end.ended] or (3 if failed_for_good else 0)


def _flags(words: dict[str, object]) -> dict[str, object]:
    """Flags under the names of their settings; what was not given is left out."""
    tables = {
        "crawl": ("depth", "max_urls", "max_time", "max_wait", "workers"),
        "filters": ("scope", "include", "exclude"),
        "fetch": ("delay", "concurrency", "contact", "resolve"),
        "permit": ("allow_private",),
    }
    given = {f"{table}__{name}": words[name] or None for table, names in tables.items() for name in names}
    given |= {
        f"{table}__{name}": words[name]
        for table, names in tables.items()
        for name in names
        if words[name] == 0
    }
    given["permit__allow_private"] = words["allow_private"] or None
    given["permit__robots"] = False if words["no_robots"] else None
    return given


def _addresses(seeds: tuple[str, ...], files: tuple[str, ...]) -> list[str]:
    from tamias.plugins import load

    one, many = load("tamias.seeds", "address")(), load("tamias.seeds", "list")()
    found = [address for seed in seeds for address in one.addresses(seed)]
    return found + [address for file in files for address in many.addresses(str(Path(file)))]


def _warn(resolved: Resolved) -> None:
    if resolved.settings.fetch.contact == CONTACT_PAGE:
        click.echo("tamias: no --contact is set; servers are told about the crawler, not about you", err=True)
