"""`tamias stats`: the corpus as figures."""

from typing import TYPE_CHECKING

import click

from tamias.cli.common import Place, common, say, say_json

if TYPE_CHECKING:
    from tamias.archive.figures import Basic


@click.command()
@common
def command(place: Place) -> None:
    """Figures of the corpus: URLs, hosts, attempts by outcome, quads, bytes, resources and their versions.

    Example: tamias stats --json
    """
    from tamias.archive.captures import corpus_figures
    from tamias.archive.figures import basic_figures
    from tamias.database.connect import Database
    from tamias.frontier.postgres import PostgresFrontier

    database = Database(place.data, place.db, create=False)
    session = database.session()
    try:
        frontier = PostgresFrontier(session, same_url=str.__eq__).figures()
        corpus = corpus_figures(session)
        archive = basic_figures(session)
    finally:
        session.close()
        database.close()
    if place.json:
        say_json({"frontier": frontier, "corpus": corpus, "archive": archive})
        return
    say(f"URLs known   {sum(crawl.known for crawl in frontier.crawls):,}")
    say(f"URLs open    {sum(crawl.open for crawl in frontier.crawls):,}")
    say(f"hosts        {frontier.hosts:,}")
    for each in corpus.outcomes:
        say(f"{each.outcome:12} {each.attempts:,} attempts, {each.quads:,} quads, {each.bytes:,} bytes")
    say(f"segments     {corpus.segments:,} of {corpus.segment_bytes:,} bytes")
    if archive.datasets:
        _tell_archive(archive)


def _tell_archive(archive: "Basic") -> None:
    ratio = f", {archive.bytes / archive.stored_bytes:.1f} to 1" if archive.stored_bytes else ""
    say(f"resources    {archive.datasets:,} on {archive.hosts:,} hosts, named by {archive.sources:,} sources")
    say(f"versions     {archive.versions:,} of {archive.bytes:,} bytes")
    say(f"stored       {archive.stored_bytes:,} bytes{ratio}")
