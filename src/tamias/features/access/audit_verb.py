"""`tamias audit`: every writing call to the service, and of commands."""

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json, session_at


@click.command()
@click.option("--who", help="Only calls of this token, 'secret', or 'command:USER'.")
@click.option("--since", metavar="TIME", help="Only calls since this time.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many.")
@common
def command(place: CommonOptions, who: str | None, since: str | None, limit: int) -> None:
    """Shows who wrote what, when, and how it ended; the latest last.

    Example: tamias audit --who alice --since 2026-11-01
    """
    from tamias.access.audit import list_entries
    from tamias.archive.moments import first_millisecond

    begin = first_millisecond(since) if since else 0
    with session_at(place) as session:
        found = list_entries(session, since=begin, who=who, limit=limit)
    for each in reversed(found):
        if place.json:
            say_json(each)
        else:
            more = f" and {each.count - len(each.targets)} more" if each.count > len(each.targets) else ""
            about = " ".join(each.targets) + more
            say(f"{each.at}  {each.who:16} {each.what}  {about}{'  ' if about else ''}{each.outcome}")
