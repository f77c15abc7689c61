"""`tamias forget`: takes a resource, or a version of it, out of the archive for good."""

from contextlib import closing
from typing import TYPE_CHECKING

import click

from tamias.access import audited, command_caller
from tamias.cli.console.options import CommonOptions, common, count_of, print_result, say, say_json
from tamias.model.errors import UsageError

if TYPE_CHECKING:
    from tamias.archive.tombstones import ForgetTarget
    from tamias.database.connect import Database, Session
    from tamias.features.forgetting.erase_blobs import Forgetting
    from tamias.settings import Settings


@click.command()
@click.argument("urls", metavar="URL...", nargs=-1)
@click.option("--version", "number", type=click.IntRange(min=1), metavar="N", help="Only this version.")
@click.option("--reason", metavar="TEXT", help="The reason, which answers to requests for it give.")
@click.option("--dry-run", is_flag=True, help="Show how many versions and bytes would be removed.")
@click.option("--lift", is_flag=True, help="Let the URLs be fetched again. What was forgotten stays so.")
@click.option("--by-rules", is_flag=True, help="Remove the versions that the retention rules do not keep.")
@click.option("--finish", is_flag=True, help="Finish a run that was interrupted.")
@click.option("--list", "listing", is_flag=True, help="List what was forgotten.")
@common
def command(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions,
    urls: tuple[str, ...],
    number: int | None,
    reason: str | None,
    dry_run: bool,
    lift: bool,
    by_rules: bool,
    finish: bool,
    listing: bool,
) -> int:
    """Removes resources, or one version, for good: bodies, statements, WARC records, catalogue and profiles.

    A tombstone with the reason stays, and the URL is not fetched again. Other versions keep every byte. It
    does not ask first: --dry-run shows what it would remove. You can kill it at any moment: the next run, or
    `tamias serve`, finishes it.

    Example: tamias forget https://example.org/data.csv --version 3 --reason "personal data"
    """
    from tamias.archive.tombstones import find_target, put_tombstone
    from tamias.database.connect import Database

    if sum((bool(urls), by_rules, finish, listing)) != 1:
        raise UsageError("Name URLs, or one of --by-rules, --finish and --list.")
    if number is not None and len(urls) > 1:
        raise UsageError("--version is for one URL.")
    settings = place.settings().settings
    with (
        closing(Database(place.data, place.db, create=False)) as database,
        closing(database.session()) as session,
    ):
        if listing:
            return _list(place, session)
        if lift:
            return _lift(place, session, settings, urls)
        if by_rules:
            return _apply_rules(place, database, session, settings, dry_run=dry_run)
        if urls:
            names = frozenset(settings.filters.session_names)
            targets = [find_target(session, url, number, names) for url in urls]
            if dry_run:
                _tell_targets(place, targets)
                return 0
            with audited(session, place.data, "forget", [each.url for each in targets]):
                for each in targets:
                    put_tombstone(session, each, reason, command_caller())
                return _run(place, database, settings)
        return _run(place, database, settings)


def _lift(place: CommonOptions, session: "Session", settings: "Settings", urls: tuple[str, ...]) -> int:
    from tamias.archive.tombstones import lift_blocks

    names = frozenset(settings.filters.session_names)
    with audited(session, place.data, "forget --lift", urls):
        lifted = lift_blocks(session, urls, names, command_caller())
    after = "what was forgotten stays so ('tamias add' watches it)"
    lines = (f"may be fetched again: {url}; {after}" for url in dict.fromkeys(lifted))
    print_result(place, {"lifted": lifted}, lines)
    return 0


def _list(place: CommonOptions, session: "Session") -> int:
    from tamias.archive.moments import rfc3339
    from tamias.archive.tombstones import all_tombstones

    found = all_tombstones(session)
    if place.json:
        say_json({"tombstones": found})
        return 0
    for each in found:
        what = each.url if each.number is None else f"{each.url} version {each.number}"
        state = "" if each.finished_at else f" (under way: {each.remains or 'not finished'})"
        blocked = " (not fetched again)" if each.blocked else ""
        say(f"{rfc3339(each.at)}  {what}: {each.reason}{blocked}{state}")
    return 0


def _apply_rules(
    place: CommonOptions, database: "Database", session: "Session", settings: "Settings", *, dry_run: bool
) -> int:
    from tamias.features.forgetting.retention import apply_rules

    applied = apply_rules(session, settings, dry_run=dry_run)
    if dry_run:
        if place.json:
            say_json(applied)
        else:
            say(f"would remove  {applied.versions:,} versions of {applied.bytes:,} bytes")
            say(f"of            {applied.resources:,} resources")
            if applied.captures:
                say(f"in WARC files {applied.captures:,} captures of {applied.capture_bytes:,} bytes")
        return 0
    return _run(place, database, settings)


def _run(place: CommonOptions, database: "Database", settings: "Settings") -> int:
    from tamias.features.forgetting.forgetter import Forgetter

    with closing(Forgetter(database, place.data, settings)) as forgetter:
        done = forgetter.run()
    if place.json:
        say_json(done)
    else:
        _tell(done)
    return 0


def _tell_targets(place: CommonOptions, targets: list["ForgetTarget"]) -> None:
    if place.json:
        say_json({"targets": targets})
        return
    for each in targets:
        say(f"would remove  {count_of(each.versions, 'version')} of {each.bytes:,} bytes: {each.url}")
        say(f"on disk       {each.stored_bytes:,} bytes that no other resource has")


def _tell(done: "Forgetting") -> None:
    say(f"forgotten  {done.finished:,} of {done.tombstones:,}")
    say(f"bodies     {done.bodies:,} removed, {done.recoded:,} others stored again without them")
    say(f"segments   {done.segments:,} with statements erased")
    say(f"warc       {done.warc_records:,} records erased")
    for url in dict.fromkeys(done.not_stored):
        say(f"nothing    was stored of {url}; it will not be fetched ('--lift' undoes that)")
    for url in dict.fromkeys(done.shared):
        say(f"shared     a body stays: {url} has it too")
    for each in dict.fromkeys(done.remains):
        say(f"left       {each}; 'tamias forget --finish' or 'tamias serve' finishes it")
