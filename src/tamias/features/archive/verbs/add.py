"""`tamias add`: puts resources, portals, endpoints and sitemaps under archive watch."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from tamias.cli.console.options import CommonOptions, audited, common, printable, say, say_json
from tamias.cli.import_seeds import named_seeds
from tamias.model.errors import UsageError
from tamias.model.item import TRUSTED, Seed
from tamias.model.url import fetch_url
from tamias.schedule.rules import seconds_of

if TYPE_CHECKING:
    from tamias.crawl.revisit.watches import Added, Wanted
    from tamias.settings import Settings


@click.command()
@click.argument("urls", metavar="URL...", nargs=-1)
@click.option("--portal", is_flag=True, help="The URLs are data portals: watch everything they offer.")
@click.option(
    "--sparql", metavar="ENDPOINT", help="Watch what a query returns, asked regularly; use with --query."
)
@click.option(
    "--query", "query_file", type=click.Path(), help="File with the SELECT or CONSTRUCT for --sparql."
)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(),
    help="List of URLs, or -: text, or CSV with a uri header (and type, title, format, portal, source).",
)
@click.option("--title", help="Title of the resource.")
@click.option("--format", "format_name", help="Expected format: a media type, or a short name such as csv.")
@click.option("--every", metavar="INTERVAL", help="Visit this often: 90m, 12h, 1d, 2w. [by how it changes]")
@click.option(
    "--priority", type=click.FloatRange(min=0.01, max=100), help="Importance beside other resources. [1]"
)
@common
def command(
    place: CommonOptions,
    urls: tuple[str, ...],
    *,
    portal: bool,
    sparql: str | None,
    query_file: str | None,
    files: tuple[str, ...],
    title: str | None,
    format_name: str | None,
    every: str | None,
    priority: float | None,
) -> int:
    """Watches resources: every version of them is stored. `tamias serve` visits them.

    A portal, an endpoint or a sitemap is named with its kind: ckan:URL, sparql:URL, oai-pmh:URL, or --portal.
    Each is read again every schedule.harvests seconds, and what it names is watched.

    Example: tamias add https://example.org/data.csv --title "Budget 2026"
    """

    settings = place.settings().settings
    queries = _query_sources(sparql, query_file)
    named, skipped = _usable(settings, named_seeds(urls, files))
    harvesters = [_harvested(seed) for seed in named if seed.kind is not None or portal] + queries
    wanted = [_wanted(seed, title, format_name) for seed in named if seed.kind is None and not portal]
    if not (harvesters or wanted or skipped):
        raise UsageError("Nothing to watch. Name a URL, a --file, or --sparql with --query.")
    if harvesters and any((every, priority)):
        raise UsageError(
            "--every and --priority are for resources; for portals use 'tamias portals every URL INTERVAL'."
        )
    every_ms = None if every is None else seconds_of(every) * 1000
    wanted = [msgspec.structs.replace(each, every=every_ms, priority=priority) for each in wanted]
    added = _add(place, settings, wanted, harvesters, skipped)
    _tell(place, added)
    return 1 if _has_failed(added) else 0


def _has_failed(added: "Added") -> bool:
    return bool(added.refused) and not added.new and not added.known


def _usable(settings: "Settings", seeds: list[Seed]) -> tuple[list[Seed], list[tuple[str, str]]]:
    """Separates what can be watched from lines of lists that cannot, each with the reason.

    Raises `UsageError` for one that was named by itself. What filters say of resources is asked later.
    """
    from tamias.crawl.plan.admit import Admission
    from tamias.crawl.verbs.seed_check import seed_problem

    admission = Admission(settings, [seed.address for seed in seeds if seed.problem is None])
    usable, skipped = [], []
    for seed in seeds:
        problem = seed.problem if seed.kind is None else seed_problem(seed, admission)
        if problem is None:
            usable.append(seed)
        elif seed.line is None:
            raise UsageError(problem)
        else:
            skipped.append((seed.line, problem))
    return usable, skipped


def _add(
    place: CommonOptions,
    settings: "Settings",
    wanted: list["Wanted"],
    harvesters: list[Seed],
    skipped: list[tuple[str, str]],
) -> "Added":
    from tamias.crawl.plan.admit import Admission, open_frontier, seed_items
    from tamias.crawl.revisit.watches import Watcher
    from tamias.database.connect import Database
    from tamias.model.item import WATCH

    with (
        closing(Database(place.data, place.db, buckets=settings.frontier.buckets)) as database,
        closing(database.session()) as session,
    ):
        frontier = open_frontier(session, settings)
        named = [each.url for each in wanted] + [each.address for each in harvesters]
        with audited(session, place.data, "add", named) as ending:
            watcher = Watcher(session, frontier, Admission(settings, ()))
            added = watcher.add(wanted, by_user=True)
            added.refused += skipped
            new = watcher.add_sources(seed_items(settings, harvesters, WATCH))
            added.new += new
            added.known += len(harvesters) - new
            if _has_failed(added):
                ending.failure = "nothing could be watched"
    return added


def _harvested(seed: Seed) -> Seed:
    return Seed(address=seed.address, kind=seed.kind or "portal", tags=(TRUSTED,))


def _wanted(seed: Seed, title: str | None, format_name: str | None) -> "Wanted":
    from tamias.crawl.revisit.watches import Wanted

    tags = dict(tag.partition("=")[::2] for tag in seed.tags if "=" in tag)
    return Wanted(
        url=seed.address,
        title=title or tags.get("title"),
        format=format_name or tags.get("format"),
        source=tags.get("source", ""),
        portal=tags.get("portal"),
    )


def _query_sources(endpoint: str | None, query_file: str | None) -> list[Seed]:
    from tamias import plugins

    if endpoint is None and query_file is None:
        return []
    if endpoint is None or query_file is None:
        raise UsageError("--sparql needs --query FILE, and --query needs --sparql ENDPOINT.")
    source = plugins.load("harvesters", "sparql-query")
    address = source.address(fetch_url(endpoint), _text(Path(query_file)))
    return [Seed(address=address, kind="sparql-query", tags=(TRUSTED,))]


def _text(query_file: Path) -> str:
    try:
        return query_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the query {query_file}: {error}") from error


def _tell(place: CommonOptions, added: "Added") -> None:
    if place.json:
        say_json(added)
        return
    say(f"{added.new:,} watched now, {added.known:,} already watched")
    if added.new or added.known:
        say("'tamias serve' visits them whenever they are due; 'tamias crawl --recrawl' visits them once")
    for url, reason in added.refused:
        click.echo(f"not added: {printable(url)}: {reason}", err=True)
