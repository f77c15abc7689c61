"""`tamias strategy`: apply, list, test and roll back strategies."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tamias.cli.console.options import CommonOptions, common, print_result, say, say_json
from tamias.model.errors import UsageError

if TYPE_CHECKING:
    from tamias.database.connect import Session
    from tamias.features.strategy.build import Trial
    from tamias.features.strategy.versions import StrategyVersion


DEFAULT = "default"


def of_crawl(function: Callable[..., None]) -> Callable[..., None]:
    """Add the option that names the crawl of a strategy."""
    return click.option(
        "--crawl", "crawl_name", default=DEFAULT, show_default=True, help="The crawl it is for."
    )(function)


@click.group()
def command() -> None:
    """The order of visits by your own SQL: score_url, score_link and order_url (docs/strategy.md).

    Example: tamias strategy apply examples/strategies/keywords.sql
    """


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Check and test it on a sample; change nothing.")
@of_crawl
@common
def apply(place: CommonOptions, file: Path, dry_run: bool, crawl_name: str) -> None:
    """Checks the functions in FILE, tests them on a sample of the known URLs, and activates them for a crawl.

    The crawl need not exist yet: 'tamias crawl --crawl NAME' then begins with the strategy.

    Example: tamias strategy apply focus.sql --dry-run
    """
    from tamias.crawl.plan.policy import crawl_of
    from tamias.features.strategy import versions
    from tamias.features.strategy.links import read_sample
    from tamias.frontier.service import found_crawl

    text = _text(file)
    settings = place.settings().settings.strategy
    seconds = settings.seconds
    with _session(place) as session:
        known = found_crawl(session, crawl_name)
        sample = read_sample(session, known.crawl) if known else []
        number = None
        try:
            if dry_run or known is None:  # a crawl is not made for a strategy that is refused
                tried = versions.check(session, text, sample, seconds)
            if not dry_run:
                crawl = known.crawl if known else crawl_of(session, crawl_name)
                number, tried = versions.apply(session, crawl, file.name, text, sample, seconds)
        except UsageError as error:
            raise UsageError(f"{file}: {error}; the active strategy has not changed") from error
    if place.json:
        say_json({"number": number, "crawl": crawl_name, "tried": tried})
        return
    say(f"strategy {number} is active{_in(crawl_name)}" if number else "the strategy can be activated")
    _print_trial(tried)
    if tried.note:
        say(f"note       {tried.note}")
    if "score_link" in tried.functions and not settings.links:
        say("score_link needs links: set strategy.links = true")


@command.command("list")
@click.option("--crawl", "crawl_name", help="Only those of this crawl. [all]")
@common
def list_all(place: CommonOptions, crawl_name: str | None) -> None:
    """Lists all strategies and their status.

    Example: tamias strategy list
    """
    from tamias.features.strategy.versions import versions

    with _session(place) as session:
        found = [each for each in versions(session) if crawl_name in (None, each.crawl_name)]
    lines = (
        f"{each.number:>4}  {each.state:<9} {each.made_at:%Y-%m-%d %H:%M}  {each.name}{_in(each.crawl_name)}"
        + (f"  {each.problem}" if each.problem else "")
        for each in found
    )
    nothing = ["no strategies yet: URLs are visited in the default order"]
    print_result(place, [_plain(each) for each in found], lines if found else nothing)


@command.command()
@click.argument("number", type=int, required=False)
@of_crawl
@common
def show(place: CommonOptions, number: int | None, crawl_name: str) -> None:
    """Prints the text of a crawl's active strategy, or of the one with this number.

    Example: tamias strategy show 3
    """
    from tamias.features.strategy.versions import rescoring_left, versions
    from tamias.frontier.crawls import named

    with _session(place) as session:
        crawl = named(session, crawl_name)
        found = versions(session)
        left = rescoring_left(session, crawl)
    chosen = next((each for each in found if _is_meant(each, number, crawl)), None)
    if chosen is None:
        if number is not None:
            raise UsageError(f"there is no strategy {number}; 'tamias strategy list' shows all")
        print_result(place, None, ["no strategy is active: URLs are visited in the default order, by depth"])
        return
    notes = [f"strategy {chosen.number}, {chosen.name}, {chosen.state}", chosen.problem]
    notes += ["rescoring known URLs"] if left else []
    lines = [*(f"-- {note}" for note in notes if note), chosen.text]
    print_result(place, {**_plain(chosen), "text": chosen.text, "rescoring": left}, lines)


@command.command()
@click.argument("number", type=int, required=False)
@of_crawl
@common
def rollback(place: CommonOptions, number: int | None, crawl_name: str) -> None:
    """Activates an earlier strategy: the one with this number, or the one that was active before.

    Example: tamias strategy rollback
    """
    from tamias.features.strategy.versions import roll_back
    from tamias.frontier.crawls import named

    with _session(place) as session:
        held = roll_back(session, named(session, crawl_name), number)
    print_result(place, {"number": held}, [f"strategy {held} is active again{_in(crawl_name)}"])


@command.command()
@of_crawl
@common
def off(place: CommonOptions, crawl_name: str) -> None:
    """Deactivates the strategy of a crawl: its URLs are visited in the default order, by depth.

    Example: tamias strategy off
    """
    from tamias.features.strategy.versions import turn_off
    from tamias.frontier.crawls import named

    with _session(place) as session:
        was = turn_off(session, named(session, crawl_name))
    said = "no strategy was active" if was is None else f"strategy {was} is no longer active"
    print_result(place, {"was": was}, [said])


@command.command("test")
@click.argument("url")
@click.option("--anchor", help="Text of a link to it.")
@click.option("--left", help="Text before the link.")
@click.option("--right", help="Text after the link.")
@click.option(
    "--depth", type=click.IntRange(0, 32_767), default=1, show_default=True, help="Steps from a seed."
)
@of_crawl
@common
def try_url(
    place: CommonOptions,
    url: str,
    anchor: str | None,
    left: str | None,
    right: str | None,
    depth: int,
    crawl_name: str,
) -> None:
    """Shows the score of URL, with its stored links or the link you describe.

    Example: tamias strategy test http://example.org/rivers --anchor "rivers of Europe"
    """
    from tamias.features.strategy.links import describe_url
    from tamias.features.strategy.scores import SeenLink, StrategyFailure, ask, scale_of
    from tamias.features.strategy.versions import read_active
    from tamias.frontier.crawls import named
    from tamias.model.item import priority_class

    settings = place.settings().settings
    link = (
        SeenLink(anchor=anchor, context_left=left, context_right=right) if anchor or left or right else None
    )
    with _session(place) as session:
        crawl = named(session, crawl_name)
        number = session.transact(read_active).get(crawl)
        if number is None:
            raise UsageError("no strategy is active; 'tamias strategy apply FILE' activates one")
        page = describe_url(session, settings, url, crawl, depth, link)
        said = ask(session, number, [page], settings.strategy.seconds)
        scale = session.transact(partial(scale_of, number=number))
    if isinstance(said, StrategyFailure):
        raise UsageError(f"strategy {number}: {said.what}")
    score = said[0].score
    shown = {
        "strategy": number,
        "url": page.url,
        "links": len(page.links),
        "score_url": said[0].url_score,
        "score_link": said[0].link_score,
        "score": score,
        "class": None if score is None else priority_class(score / scale),
    }
    lines = (
        f"{name:<11} {'none: the default score' if value is None else value}" for name, value in shown.items()
    )
    print_result(place, shown, lines)


@contextmanager
def _session(place: CommonOptions) -> Iterator["Session"]:
    from tamias.database.connect import Database

    buckets = place.settings().settings.frontier.buckets
    with (
        closing(Database(place.data, place.db, buckets=buckets)) as database,
        closing(database.session()) as session,
    ):
        yield session


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text") from error


def _print_trial(tried: "Trial") -> None:
    say(f"functions  {', '.join(tried.functions)}")
    say(f"tried on   {tried.sample} URLs and {tried.links} links in {tried.milliseconds:.1f} ms")


def _is_meant(version: "StrategyVersion", number: int | None, crawl: int) -> bool:
    if number is not None:
        return version.number == number
    return version.state == "in force" and version.crawl == crawl


def _in(crawl: str) -> str:
    return "" if crawl == DEFAULT else f" in the crawl '{crawl}'"


def _plain(version: "StrategyVersion") -> dict[str, object]:
    plain = {name: getattr(version, name) for name in ("number", "name", "state", "problem")}
    return {**plain, "crawl": version.crawl_name, "made_at": version.made_at.isoformat()}
