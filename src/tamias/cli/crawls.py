"""`tamias crawls`: several crawls in one frontier; listed, paused, resumed, limited, deleted, reopened."""

import re
from typing import TYPE_CHECKING

import click

from tamias import plugins
from tamias.access import audited
from tamias.cli.console.options import (
    CommonOptions,
    common,
    print_result,
    queue_units,
    say,
    say_json,
    session_at,
)
from tamias.frontier import crawls
from tamias.frontier.due import ReopenFilter, reopen_visited
from tamias.model.capture import Outcome
from tamias.model.errors import UsageError

if TYPE_CHECKING:
    from tamias.database.connect import Session

ACTIONS = ("list", "pause", "resume", "stop", "limit", "delete", "reopen")
DEFAULT = "default"
OUTCOMES = tuple(each.word for each in Outcome if each is not Outcome.NEW)


@click.command()
@click.argument("action", type=click.Choice(ACTIONS), default="list")
@click.argument("name", required=False)
@click.option(
    "--max-urls", type=click.IntRange(min=0), help="With limit: the number of URLs; 0 removes the limit."
)
@click.option(
    "--outcome", type=click.Choice(OUTCOMES), help="With reopen: URLs whose last visit had this outcome."
)
@click.option("--reason", help="With reopen: URLs whose last visit has this text in its reason.")
@click.option("--match", help="With reopen: URLs that match this regular expression.")
@common
def command(
    place: CommonOptions,
    action: str,
    name: str | None,
    max_urls: int | None,
    outcome: str | None,
    reason: str | None,
    match: str | None,
) -> None:
    """Lists the crawls: URLs known and open, state, limit, policy. Or changes one.

    A paused crawl is not visited; nor is a stopped one, until you resume it or run it again. A limited
    crawl is paused soon after that many of its URLs are done. A deleted crawl keeps its captures. Reopen
    makes visited URLs due again, such as those cut by a limit that you have raised since; without a name, in
    the default crawl.

    Example: tamias crawls pause news
    """

    which = ReopenFilter(
        outcome=None if outcome is None else Outcome[outcome.upper()].value, reason=reason, match=match
    )
    if any((outcome, reason, match)) != (action == "reopen"):
        raise UsageError("use 'tamias crawls reopen' with --outcome, --reason or --match")
    if action == "reopen":
        name = name or DEFAULT
    if (name is None) != (action == "list") or (max_urls is None) == (action == "limit"):
        raise UsageError(
            "name the crawl: 'tamias crawls resume NAME', or 'tamias crawls limit NAME --max-urls N'"
        )
    with session_at(place) as session:
        if name is None:
            _list(place, session)
        else:
            with audited(session, place.data, f"crawls {action}", [name]):
                number = crawls.named(session, name)
                reopens = action == "reopen"
                done = _reopen(session, number, which) if reopens else _act(session, action, number, max_urls)
            print_result(place, {"crawl": name, "done": done}, [f"{name}: {done}"])


def _act(session: "Session", action: str, crawl: int, max_urls: int | None) -> str:
    """Do it; return what is said of it."""
    if action == "pause":
        crawls.pause(session, crawl)
        return "paused"
    if action == "resume":
        crawls.resume(session, crawl)
        return "resumed"
    if action == "stop":
        crawls.end_run(session, crawl)
        return "stopped"
    if action == "limit":
        crawls.set_limit(session, crawl, max_urls or None)
        return f"is paused after {max_urls:,} URLs" if max_urls else "has no limit"
    for delete in plugins.load_all("crawl_deletions").values():
        delete(session, crawl)
    return f"deleted, with {crawls.delete(session, crawl):,} URLs"


def _reopen(session: "Session", crawl: int, which: ReopenFilter) -> str:
    """Make URLs due again; return what is said of it. Nothing is put, so that no two URLs are compared."""
    from tamias.frontier.postgres import PostgresFrontier

    try:
        re.compile(which.match or "")
    except re.error as error:
        raise UsageError(f"--match is not a valid regular expression: {error}") from None
    count = reopen_visited(session, PostgresFrontier(session, same_url=str.__eq__), crawl, which)
    return {0: "nothing matches", 1: "1 URL is due again"}.get(count, f"{count:,} URLs are due again")


def _list(place: CommonOptions, session: "Session") -> None:
    found = crawls.crawls(session)
    if place.json:
        say_json(found)
        return
    for each in found:
        most = "" if each.limit is None else f", at most {each.limit:,}"
        units = queue_units(each.policy.get("options", {}).get("frontier.queue", "host"))
        urls = f"{each.open:,} of {each.known:,} URLs open, {units}: {each.hosts:,}"
        say(f"{each.name}: {each.state}, {urls}{most}")
        for name, value in sorted(each.policy.get("flags", {}).items()):
            say(f"  {name.replace('__', '.')} = {value}")
