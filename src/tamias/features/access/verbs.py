"""`tamias token`: named tokens of the service; `tamias audit`: every writing call to it, and of commands."""

from contextlib import closing
from typing import TYPE_CHECKING

import click

from tamias.access import audited, command_caller
from tamias.cli.console.options import CommonOptions, common, print_result, say, say_json, session_at
from tamias.model.errors import UsageError

if TYPE_CHECKING:
    from tamias.features.tokens.tokens import AccessScope


_SCOPES = ("read", "add", "crawl", "forget", "admin")


@click.group()
def command() -> None:
    """Named tokens for the service: who may read, add, crawl, forget or administer.

    Example: tamias token make alice --scope add --scope crawl --bound data.example.org
    """


@command.command()
@click.argument("name")
@click.option(
    "--scope", "scopes", multiple=True, required=True, type=click.Choice(_SCOPES), help="What it allows."
)
@click.option(
    "--bound",
    "bounds",
    multiple=True,
    metavar="HOST|URL",
    help="Only for this host, or what this portal lists.",
)
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Days until it ends. [never]")
@common
def make(
    place: CommonOptions,
    name: str,
    scopes: "tuple[AccessScope, ...]",
    bounds: tuple[str, ...],
    days: float | None,
) -> None:
    """Makes a token and prints it, once: only its hash is stored.

    Example: tamias token make alice --scope add --scope crawl --bound data.example.org --days 90
    """
    from tamias.database.connect import Database
    from tamias.features.tokens.tokens import NewToken, make_token

    new = NewToken(name=name, scopes=list(scopes), bounds=list(bounds), days=days)
    with (
        closing(Database(place.data, place.db)) as database,
        closing(database.session()) as session,
        audited(session, place.data, "token make", [name]),
    ):
        text = make_token(session, new, command_caller())
    print_result(place, {"name": name, "token": text}, [text])


@command.command("list")
@common
def list_(place: CommonOptions) -> None:
    """Lists tokens with their scopes and bounds.

    Example: tamias token list
    """
    from tamias.features.tokens.tokens import list_tokens

    with session_at(place) as session:
        found = list_tokens(session)
    if place.json:
        say_json(found)
        return
    for each in found:
        state = (
            f"withdrawn {each.withdrawn_at}"
            if each.withdrawn_at
            else f"until {each.expires_at or 'withdrawn'}"
        )
        say(f"{each.name:20} {','.join(each.scopes):28} {','.join(each.bounds) or 'everything':28} {state}")


@command.command()
@click.argument("name")
@common
def withdraw(place: CommonOptions, name: str) -> None:
    """Withdraws a token. Sessions that began with it end too.

    Example: tamias token withdraw alice
    """
    from tamias.features.tokens.tokens import withdraw_token

    with (
        session_at(place) as session,
        audited(session, place.data, "token withdraw", [name]),
    ):
        if not withdraw_token(session, name, command_caller()):
            raise UsageError(f"there is no active token '{name}'; 'tamias token list' lists them")


@click.command("audit")
@click.option("--who", help="Only calls of this token, 'secret', or 'command:USER'.")
@click.option("--since", metavar="TIME", help="Only calls since this time.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many.")
@common
def audit(place: CommonOptions, who: str | None, since: str | None, limit: int) -> None:
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
