"""`tamias remove`: resources are no longer watched; their history stays."""

import click

from tamias.cli.console.options import CommonOptions, common, print_result, session_at
from tamias.model.errors import UsageError


@click.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@common
def command(place: CommonOptions, urls: tuple[str, ...]) -> None:
    """Stops watching resources. Their versions stay, and `tamias add` starts again.

    Example: tamias remove https://example.org/data.csv
    """
    from tamias.archive.sources.catalogues import watched_portals
    from tamias.crawl.verbs.watch import stop_watched

    with session_at(place) as session:
        unknown = stop_watched(session, place.data, place.settings().settings, urls)
        portals = watched_portals(session).intersection(unknown)
    stopped = [url for url in urls if url not in unknown]
    stays = "its versions stay ('tamias versions' lists them)"
    print_result(
        place, {"stopped": stopped, "unknown": unknown}, (f"stopped: {url}; {stays}" for url in stopped)
    )
    if unknown:
        if portals:
            raise UsageError(
                f"{min(portals)} is a portal: 'tamias portals stop' or 'remove' ends its harvests"
            )
        raise UsageError(f"not watched: {', '.join(unknown)}. 'tamias list' shows what is.")
