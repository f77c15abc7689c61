"""`tamias where`: show which document, endpoint, graph or dump serves an IRI, and who says so."""

import json
from contextlib import closing

import click

from tamias.cli.console.options import CommonOptions, common, printable, say, say_json, session_at


@click.command()
@click.argument("iri")
@common
def command(place: CommonOptions, iri: str) -> int:
    """Says where an IRI is served, by what was crawled, by Semantic Sitemaps and by VoID descriptions.

    A place that only another host declares is marked as not confirmed. Exits with 1 if there is none.

    Example: tamias where http://example.org/resource/chipmunk
    """
    from tamias.crawl.plan.admit import Admission
    from tamias.features.catalogue.catalogue import Catalogue
    from tamias.features.catalogue.where import where_is
    from tamias.frontier.postgres import PostgresFrontier

    settings = place.settings().settings
    with (
        session_at(place) as session,
        Catalogue(place.data, settings.serve) as catalogue,
    ):
        if catalogue.is_filled_by_us:
            with closing(catalogue.refresher(session)) as refresher:
                refresher.round()

        def ask(query: str) -> list[dict[str, str]]:
            with closing(catalogue.ask(query, "application/sparql-results+json").content) as content:
                rows = json.loads(content.read())["results"]["bindings"]
            return [{name: term["value"] for name, term in row.items()} for row in rows]

        buckets = PostgresFrontier(session, same_url=str.__eq__).buckets
        found = where_is(session, Admission(settings, ()), buckets, ask, iri)
    for each in found:
        if place.json:
            say_json(each)
            continue
        more = [f"graph {graph}" for graph in each.graphs]
        more += [f"slicing {each.slicing}"] if each.slicing else []
        more += [f"dataset {each.dataset}"] if each.dataset else []
        more += [] if each.confirmed else ["not confirmed by its host"]
        details = f"; {', '.join(more)}" if more else ""
        say(printable(f"{each.kind:<9} {each.url}  (says {each.by}{details})"))
    if not found:
        click.echo(f"nothing is known of {printable(iri)}", err=True)
    return 0 if found else 1
