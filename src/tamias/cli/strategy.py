"""`tamias strategy`: what is visited first, said in SQL; checked, versioned, and taken back when it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json
from tamias.model.errors import UsageError

if TYPE_CHECKING:
    from tamias.crawl.strategy.building import Tried
    from tamias.crawl.strategy.versions import StrategyVersion
    from tamias.database.connect import Session


@click.group()
def command() -> None:
    """The order of visits by your own SQL: score_url, score_link and order_url (docs/strategy.md).

    Example: tamias strategy apply examples/strategies/keywords.sql
    """


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Check and test it on a sample; change nothing.")
@common
def apply(place: CommonOptions, file: Path, dry_run: bool) -> None:
    """Checks the functions in FILE, tests them on a sample of the known URLs, and activates them.

    Example: tamias strategy apply focus.sql --dry-run
    """
    from tamias.crawl.strategy import versions
    from tamias.crawl.strategy.known import sample_of

    text = _text(file)
    settings = place.settings().settings.strategy
    with _session(place) as session:
        sample = sample_of(session)
        try:
            if dry_run:
                number, tried = None, versions.check(session, text, sample, settings.seconds)
            else:
                number, tried = versions.apply(session, file.name, text, sample, settings.seconds)
        except UsageError as error:
            raise UsageError(f"{file}: {error}; the active strategy has not changed") from error
    if place.json:
        say_json({"number": number, "tried": tried})
        return
    say(f"strategy {number} is active" if number else "the strategy can be activated")
    _tell_trial(tried)
    if tried.note:
        say(f"note       {tried.note}")
    if "score_link" in tried.functions and not settings.links:
        say("score_link needs links: set strategy.links = true")


@command.command("list")
@common
def list_all(place: CommonOptions) -> None:
    """Lists all strategies and their status.

    Example: tamias strategy list
    """
    from tamias.crawl.strategy.versions import versions

    with _session(place) as session:
        found = versions(session)
    if place.json:
        say_json([_plain(each) for each in found])
        return
    for each in found:
        why = f"  {each.problem}" if each.problem else ""
        say(f"{each.number:>4}  {each.state:<9} {each.made_at:%Y-%m-%d %H:%M}  {each.name}{why}")
    if not found:
        say("no strategies yet: URLs are visited in the default order")


@command.command()
@click.argument("number", type=int, required=False)
@common
def show(place: CommonOptions, number: int | None) -> None:
    """Prints the text of the active strategy, or of the one with this number.

    Example: tamias strategy show 3
    """
    from tamias.crawl.strategy.versions import rescoring_left, versions

    with _session(place) as session:
        found = versions(session)
        left = rescoring_left(session)
    chosen = next((each for each in found if _is_meant(each, number)), None)
    if chosen is None:
        if number is not None:
            raise UsageError(f"there is no strategy {number}; 'tamias strategy list' shows all")
        if place.json:
            say_json(None)
        else:
            say("no strategy is active: URLs are visited in the default order, by depth")
        return
    if place.json:
        say_json({**_plain(chosen), "text": chosen.text, "rescoring": left})
        return
    say(f"-- strategy {chosen.number}, {chosen.name}, {chosen.state}")
    if chosen.problem:
        say(f"-- {chosen.problem}")
    if left:
        say("-- rescoring known URLs")
    say(chosen.text)


@command.command()
@click.argument("number", type=int, required=False)
@common
def rollback(place: CommonOptions, number: int | None) -> None:
    """Activates an earlier strategy: the one with this number, or the one that was active before.

    Example: tamias strategy rollback
    """
    from tamias.crawl.strategy.versions import roll_back

    with _session(place) as session:
        held = roll_back(session, number)
    say_json({"number": held}) if place.json else say(f"strategy {held} is active again")


@command.command()
@common
def off(place: CommonOptions) -> None:
    """Deactivates the strategy: URLs are visited in the default order, by depth.

    Example: tamias strategy off
    """
    from tamias.crawl.strategy.versions import turn_off

    with _session(place) as session:
        was = turn_off(session)
    if place.json:
        say_json({"was": was})
    else:
        say("no strategy was active" if was is None else f"strategy {was} is no longer active")


@command.command("test")
@click.argument("url")
@click.option("--anchor", help="Text of a link to it.")
@click.option("--left", help="Text before the link.")
@click.option("--right", help="Text after the link.")
@click.option(
    "--depth", type=click.IntRange(0, 32_767), default=1, show_default=True, help="Steps from a seed."
)
@common
def try_url(
    place: CommonOptions, url: str, anchor: str | None, left: str | None, right: str | None, depth: int
) -> None:
    """Shows the score of URL, with its stored links or the link you describe.

    Example: tamias strategy test http://example.org/rivers --anchor "rivers of Europe"
    """
    from tamias.crawl.strategy.known import described
    from tamias.crawl.strategy.scale import scale_of
    from tamias.crawl.strategy.scoring import Broken, Seen, ask
    from tamias.crawl.strategy.versions import in_force
    from tamias.model.item import priority_class

    settings = place.settings().settings
    link = Seen(anchor=anchor, context_left=left, context_right=right) if anchor or left or right else None
    with _session(place) as session:
        number = session.transact(in_force)
        if number is None:
            raise UsageError("no strategy is active; 'tamias strategy apply FILE' activates one")
        page = described(session, settings, url, depth, link)
        said = ask(session, number, [page], settings.strategy.seconds)
        scale = session.transact(partial(scale_of, number=number))
    if isinstance(said, Broken):
        raise UsageError(f"strategy {number}: {said.what}")
    score = said[0].score
    told = {
        "strategy": number,
        "url": page.url,
        "links": len(page.links),
        "score_url": said[0].url_score,
        "score_link": said[0].link_score,
        "score": score,
        "class": None if score is None else priority_class(score / scale),
    }
    if place.json:
        say_json(told)
        return
    for name, value in told.items():
        say(f"{name:<11} {'none: the default score' if value is None else value}")


@contextmanager
def _session(place: CommonOptions) -> Iterator["Session"]:
    from tamias.database.connect import Database

    database = Database(place.data, place.db, buckets=place.settings().settings.frontier.buckets)
    session = database.session()
    try:
        yield session
    finally:
        session.close()
        database.close()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text") from error


def _tell_trial(tried: "Tried") -> None:
    say(f"functions  {', '.join(tried.functions)}")
    say(f"tried on   {tried.sample} URLs and {tried.links} links in {tried.milliseconds:.1f} ms")


def _is_meant(version: "StrategyVersion", number: int | None) -> bool:
    return version.state == "in force" if number is None else version.number == number


def _plain(version: "StrategyVersion") -> dict[str, object]:
    return {
        "number": version.number,
        "name": version.name,
        "state": version.state,
        "made_at": version.made_at.isoformat(),
        "problem": version.problem,
    }
