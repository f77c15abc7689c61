"""`tamias add`: puts resources, portals, endpoints and sitemaps under archive watch."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tamias.cli.console.options import CommonOptions, common, printable, say, say_json
from tamias.model.errors import UsageError
from tamias.model.item import Seed
from tamias.model.url import fetch_url

if TYPE_CHECKING:
    from tamias.crawl.revisit.watches import Added


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

    from tamias.crawl.verbs.seed_check import named_seeds
    from tamias.crawl.verbs.watch import has_failed, plan_watch, put_watched
    from tamias.database.connect import Database

    settings = place.settings().settings
    plan = plan_watch(
        settings,
        named_seeds(urls, files),
        _query_sources(sparql, query_file),
        portal=portal,
        title=title,
        format_name=format_name,
        every=every,
        priority=priority,
    )
    with (
        closing(Database(place.data, place.db, buckets=settings.frontier.buckets)) as database,
        closing(database.session()) as session,
    ):
        added = put_watched(session, place.data, settings, plan)
    _tell(place, added)
    return 1 if has_failed(added) else 0


def _query_sources(endpoint: str | None, query_file: str | None) -> list[Seed]:
    from tamias import plugins

    if endpoint is None and query_file is None:
        return []
    if endpoint is None or query_file is None:
        raise UsageError("--sparql needs --query FILE, and --query needs --sparql ENDPOINT.")
    source = plugins.load("harvesters", "sparql-query")
    address = source.address(fetch_url(endpoint), _text(Path(query_file)))
    return [Seed(address=address, kind="sparql-query")]


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
