"""`tamias serve`: the archive over HTTP, and the workers that keep it up to date."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tamias.cli.console.options import CommonOptions, common, say_json, start_database_early, store_option

if TYPE_CHECKING:
    from tamias.crawl.plan.policy import CrawlPolicy
    from tamias.serve.http.secret import Secret
    from tamias.serve.run import NamedCrawl, ServicePlan


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8080, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on."
)
@click.option("--no-crawl", is_flag=True, help="Serve only: nothing is fetched.")
@click.option(
    "--secret-file",
    type=click.Path(path_type=Path),
    help="File with the secret for write requests. [TAMIAS_SECRET or DATA/secret, created at first start]",
)
@click.option(
    "--delay", type=click.FloatRange(min=0), help="Minimum seconds between two requests to one host. [1]"
)
@click.option("--no-robots", is_flag=True, help="Ignore robots.txt.")
@click.option("--allow-private", is_flag=True, help="Allow private and loopback addresses.")
@click.option("--workers", type=click.IntRange(min=1), help="Worker processes. [one for each core]")
@click.option(
    "--contact", help="How site owners can reach you: a URL or e-mail address, sent with every request."
)
@store_option
@common
def command(
    place: CommonOptions,
    *,
    host: str,
    port: int,
    no_crawl: bool,
    secret_file: Path | None,
    delay: float | None,
    no_robots: bool,
    allow_private: bool,
    workers: int | None,
    contact: str | None,
    store: str | None,
) -> int:
    """Serves the archive: REST API, Memento, metrics. Scheduler and workers visit watched resources.

    Stops at Ctrl-C or SIGTERM. Several services on one database share the work.

    Example: tamias serve --port 8080 --contact https://example.org/about
    """
    start_database_early(place)
    from tamias.archive.forgetting.rules import RetentionRules
    from tamias.serve.http.secret import find_secret
    from tamias.serve.run import ServicePlan, check_place, run

    flags = {
        "fetch__delay": delay,
        "fetch__contact": contact,
        "permit__robots": False if no_robots else None,
        "permit__allow_private": allow_private or None,
        "crawl__workers": workers,
        "archive__store": store,
    }
    given = {key: value for key, value in flags.items() if value is not None}
    kept = place.settings(**given).settings.archive
    RetentionRules(kept.keep, kept.keep_for)  # a rule that is none is told now, not when it is to be applied
    secret = find_secret(place.data, secret_file)
    check_place(host, port, secret)
    policy, others = _policies(place, given)
    settings = place.settings(**{**policy.flags, **given}).settings
    plan = ServicePlan(
        data=place.data.absolute(),
        db=place.db,
        settings=settings,
        seeds=() if settings.filters.scope == "any" else policy.seeds,
        host=host,
        port=port,
        crawl=not no_crawl,
        others=others,
    )
    run(plan, secret, lambda: _tell(place, plan, secret))
    return 0


def _policies(place: CommonOptions, given: dict[str, Any]) -> "tuple[CrawlPolicy, tuple[NamedCrawl, ...]]":
    """What a crawl on the same data was told, for the workers go on with that as well.

    And the crawls with names that go on.
    """
    from tamias.crawl.plan.policy import CRAWL, read_policies
    from tamias.database.connect import Database
    from tamias.serve.run import NamedCrawl

    buckets = place.settings(**given).settings.frontier.buckets
    with (
        closing(Database(place.data, place.db, buckets=buckets)) as database,
        closing(database.session()) as session,
    ):
        policies = read_policies(session)
    others = [
        NamedCrawl(number, place.settings(**{**policy.flags, **given}).settings, policy.seeds)
        for number, policy in policies.items()
        if number != CRAWL
    ]
    return policies[CRAWL], tuple(each for each in others if each.settings.crawl.continuous)


def _tell(place: CommonOptions, plan: "ServicePlan", secret: "Secret") -> None:
    name = f"[{plan.host}]" if ":" in plan.host else plan.host
    address = f"http://{name}:{plan.port}"
    if place.json:
        say_json({"address": address, "secret": secret.place, "crawl": plan.crawl})
    if place.verbosity >= 0:
        click.echo(f"serving at {address}; the secret for write requests is in {secret.place}", err=True)
