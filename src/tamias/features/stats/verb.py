"""`tamias stats`: the corpus as figures."""

from contextlib import closing
from typing import TYPE_CHECKING

import click

from tamias.cli.console.options import (
    CommonOptions,
    archive_at,
    common,
    print_result,
    say,
    say_json,
    start_database_early,
)
from tamias.model.errors import UsageError
from tamias.plugins import host_notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamias.features.dcat.joins import TableColumn
    from tamias.features.stats.coverage import FieldCoverage, MappingCoverage
    from tamias.features.stats.figures import Basic, StatTable
    from tamias.filters.blocked import Blocked
    from tamias.model.site import HostNote

SHARED_SECONDS = 20.0
"""How long the database may look for content that several resources have."""


@click.command()
@click.option(
    "--joins", is_flag=True, help="Show join candidates: columns whose values are contained in another table."
)
@click.option(
    "--alike", is_flag=True, help="Show tables that have most of their columns and values in common."
)
@click.option("--url", help="With --joins and --alike: only this resource.")
@click.option(
    "--mapping",
    "portal",
    metavar="PORTAL",
    help="Show what became of each field of this portal's records: DCAT, an extra, or dropped.",
)
@common
def command(place: CommonOptions, joins: bool, alike: bool, url: str | None, portal: str | None) -> None:
    """Shows statistics: URLs, hosts, visits by outcome, quads, bytes, resources and their versions.

    Example: tamias stats --json
    """
    if url is not None and not joins and not alike:
        raise UsageError("--url selects tables: use it with --joins or --alike")
    if joins + alike + (portal is not None) > 1:
        raise UsageError("--joins, --alike and --mapping are different tables: name one of them")
    start_database_early(place)
    if portal is not None:
        _tell_mapping(place, portal)
    elif joins:
        _tell_joins(place, url)
    elif alike:
        _tell_alike(place, url)
    else:
        _tell_figures(place)


def _tell_joins(place: CommonOptions, url: str | None) -> None:
    from tamias.features.dcat.joins import read_joins

    with archive_at(place) as archive:
        found = read_joins(archive.session, archive.resource(url).id if url else None)
    lines = (f"{each.containment:4.0%}  {_column(each.of)}  in  {_column(each.within)}" for each in found)
    print_result(place, found, lines)
    if not found and not place.json:
        click.echo("tamias: no join candidates; 'tamias crawl --recrawl' looks for them", err=True)


def _tell_alike(place: CommonOptions, url: str | None) -> None:
    from tamias.features.dcat.joins import read_alike

    with archive_at(place) as archive:
        found = read_alike(archive.session, archive.resource(url).id if url else None)
    lines = (
        f"{each.alike:4.0%}  {each.url}{_sheet(each.table)}  {each.other_url}{_sheet(each.other_table)}"
        f"  ({each.columns} of {each.most_columns} columns, {each.values:4.0%} of their values)"
        for each in found
    )
    print_result(place, found, lines)
    if not found and not place.json:
        click.echo("tamias: no tables are alike; 'tamias crawl --recrawl' compares them", err=True)


def _sheet(table: int) -> str:
    return f"#{table}" if table > 1 else ""


def _tell_mapping(place: CommonOptions, portal: str) -> None:
    """Reads the kept records again with the present rules; no request is made."""
    from msgspec import structs

    from tamias.features.dcat.datasets.mapping import BAD, map_again, mapping_of
    from tamias.features.stats.coverage import MappingCoverage

    found, unread = MappingCoverage(), list[str]()
    with archive_at(place) as archive:
        for source in archive.records(portal):
            try:
                found.add(source, map_again(source), mapping_of(source).dropped)
            except BAD as error:
                unread.append(f"{source.iri}: {error}")
    fields = sorted(
        found.fields.values(), key=lambda each: (-each.lost, -each.dropped, -each.values, each.field)
    )
    if place.json:
        say_json({**structs.asdict(found), "fields": fields, "unread": unread})
        return
    say(f"{'field':<48} {'values':>7} {'mapped':>7} {'extra':>7} {'dropped':>7}")
    for each in fields:
        reason = f"  {each.reason}" if each.dropped and each.reason else "  LOST" if each.lost else ""
        say(_counts(each.field, each) + reason)
    say(_counts(f"{found.records:,} records", found))
    for line in unread:
        click.echo(f"tamias: could not be read again: {line}", err=True)


def _counts(name: str, of: "FieldCoverage | MappingCoverage") -> str:
    return f"{name:<48} {of.values:>7,} {of.mapped:>7,} {of.extra:>7,} {of.dropped + of.lost:>7,}"


def _column(column: "TableColumn") -> str:
    return f"{column.name} ({column.distinct:,}) of {column.url}{_sheet(column.table)}"


def _tell_figures(place: CommonOptions) -> None:
    from tamias.archive.captures import corpus_figures
    from tamias.archive.sources.source_records import record_stats
    from tamias.database.connect import Database
    from tamias.features.archive.descriptions import shared_content
    from tamias.features.stats.figures import content_tables, read_figures, read_portals
    from tamias.filters.blocked import blocked_figures
    from tamias.frontier.postgres import PostgresFrontier

    with (
        closing(Database(place.data, place.db, create=False)) as database,
        closing(database.session()) as session,
    ):
        frontier = PostgresFrontier(session, same_url=str.__eq__).figures()
        corpus = corpus_figures(session)
        figures = read_figures(session)
        archive, portals = figures.basic, read_portals(session)
        records = record_stats(session)
        shared = shared_content(session, SHARED_SECONDS)
        blocked = blocked_figures(session)
        notes = host_notes(session)
    if place.json:
        say_json(
            {
                "frontier": frontier,
                "corpus": corpus,
                "archive": archive,
                "types": figures.types,
                "sizes": figures.sizes,
                "hosts": figures.hosts,
                "portals": portals,
                "shared": shared,
                "records": records,
                "blocked": blocked,
                "notes": notes,
                "seconds": {"response": figures.seconds, "saving": figures.saving_seconds},
            }
        )
        return
    say(f"URLs known   {sum(crawl.known for crawl in frontier.crawls):,}")
    say(f"URLs open    {sum(crawl.open for crawl in frontier.crawls):,}")
    if again := sum(crawl.again for crawl in frontier.crawls):
        say(f"fetched again {again:,} (shorter paths were found)")
    say(f"hosts        {frontier.hosts:,}")
    for each in corpus.outcomes:
        say(f"{each.outcome:12} {each.attempts:,} attempts, {each.quads:,} quads, {each.bytes:,} bytes")
    if figures.seconds is not None:
        saving = "" if figures.saving_seconds is None else f", saving {figures.saving_seconds:.3f} s"
        say(f"last day     response {figures.seconds:.3f} s{saving} (mean of ok attempts)")
    say(f"segments     {corpus.segments:,} of {corpus.segment_bytes:,} bytes")
    if archive.datasets:
        _tell_archive(archive)
    if shared is not None and shared.bytes_saved:
        say(
            f"shared       {shared.versions:,} versions have the content of another resource,"
            f" {shared.same_bytes:,} of them its bytes; {shared.bytes_saved:,} bytes not stored again"
        )
    if records.records:
        say(
            f"records      {records.records:,} of {records.catalogues:,} catalogues, "
            f"{records.versions:,} versions of {records.bytes:,} bytes, {records.stored_bytes:,} stored"
        )
    for line in _lines_of(content_tables(figures, portals), blocked, notes):
        say(line)


def _lines_of(
    tables: "list[StatTable]", blocked: "Sequence[Blocked]", notes: "Sequence[HostNote]"
) -> "Iterator[str]":
    for name, columns, rows in tables:
        for first, *counts in rows:
            pairs = zip(counts, columns[1:], strict=True)
            said = ", ".join(f"{count:,} {column.lower()}" for count, column in pairs)
            yield f"{name.lower().removesuffix('s'):12} {first}: {said}"
    for named in blocked:
        yield f"blocked      {named.urls:,} by the block list {named.list}"
    for note in notes:
        yield f"note         {note.host}: {note.text}"


def _tell_archive(archive: "Basic") -> None:
    ratio = f", {archive.stored_bytes / archive.bytes:.3g} times their size" if archive.bytes else ""
    say(f"resources    {archive.datasets:,} on {archive.hosts:,} hosts, from {archive.sources:,} sources")
    say(f"versions     {archive.versions:,} of {archive.bytes:,} bytes")
    say(f"stored       {archive.stored_bytes:,} bytes{ratio}")
