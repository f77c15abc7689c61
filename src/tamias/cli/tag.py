"""`tamias tag`: tags that people give to known URLs, or take away."""

from getpass import getuser

import click

from tamias.access import audited
from tamias.archive.moments import rfc3339
from tamias.cli.console.options import CommonOptions, common, count_of, print_result, session_at
from tamias.model.errors import UsageError


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("target", metavar="URL|PATTERN")
@click.argument("changes", metavar="+TAG|-TAG...", nargs=-1, type=click.UNPROCESSED)
@click.option("--crawl", default="default", show_default=True, help="In this crawl.")
@click.option("--by", help="Who sets the tags. [your login name]")
@common
def command(place: CommonOptions, target: str, changes: tuple[str, ...], crawl: str, by: str | None) -> None:
    """Adds or removes tags of a URL, or of all that match a pattern with *. Without changes, prints them.

    Example: tamias tag 'https://example.org/data/*' +open -draft
    """
    from tamias.crawl.plan.admit import queue_key, same_url
    from tamias.frontier import crawls
    from tamias.frontier.tags import Tagging, change_of, is_pattern
    from tamias.model.url import fetch_url, url_key

    settings = place.settings().settings
    names = frozenset(settings.filters.session_names)
    change = change_of(changes) if changes or is_pattern(target) else None
    with session_at(place) as session:
        number = crawls.named(session, crawl)
        tagging = Tagging(session, same_url=same_url(names))
        if is_pattern(target) and change is not None:
            with audited(session, place.data, "tag", [target]):
                changed = tagging.change_all(target, number, change, by or getuser())
            print_result(
                place, {"pattern": target, "changed": changed}, [f"{count_of(changed, 'URL')} changed"]
            )
            return
        url = fetch_url(target)
        where = (queue_key(settings)(url), number, url, url_key(url, names))
        if change is not None:
            with audited(session, place.data, "tag", [url]):
                if not tagging.change(*where, change, by or getuser()):
                    raise _unknown(crawl, url)
        tags = tagging.tags(*where)
        setters = tagging.setters(*where)
    if tags is None:
        raise _unknown(crawl, url)
    by_tag = {each.tag: {"by": each.by, "at": rfc3339(each.at)} for each in setters}
    shown = [f"{tag} (by {by_tag[tag]['by']})" if tag in by_tag else tag for tag in tags]
    print_result(place, {"url": url, "tags": tags, "set_by": by_tag}, [f"{url}  {' '.join(shown)}"])


def _unknown(crawl: str, url: str) -> UsageError:
    return UsageError(f"the crawl '{crawl}' does not know {url}; to name many URLs, write a pattern with *")
