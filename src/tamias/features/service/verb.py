"""`tamias serve`: the archive over HTTP, and the workers that keep it up to date."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tamias.cli.console.options import CommonOptions, common, say_json, setting_options, start_database_early

if TYPE_CHECKING:
    from tamias.features.service.http.callers import Secret
    from tamias.features.service.run import ServicePlan


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
@setting_options(
    "fetch.delay", "permit.robots", "permit.allow_private", "crawl.workers", "fetch.contact", "archive.store"
)
@common
def command(
    place: CommonOptions,
    *,
    host: str,
    port: int,
    no_crawl: bool,
    secret_file: Path | None,
    flags: dict[str, Any],
) -> int:
    """Serves the archive: REST API, Memento, metrics. Scheduler and workers visit watched resources.

    It also works on crawls that were handed over with 'tamias crawl --in-service', each by its own options;
    --delay, --no-robots and --allow-private are for watched resources.

    Stops at Ctrl-C or SIGTERM. Several services on one database share the work.

    Example: tamias serve --port 8080 --contact https://example.org/about
    """
    start_database_early(place)
    from tamias.features.service.http.callers import find_secret
    from tamias.features.service.run import ServicePlan, check_place, run

    settings = place.settings(**flags).settings
    secret = find_secret(place.data, secret_file)
    check_place(host, port, secret)
    plan = ServicePlan(
        data=place.data.absolute(), db=place.db, settings=settings, host=host, port=port, crawl=not no_crawl
    )
    run(plan, secret, lambda: _tell(place, plan, secret))
    return 0


def _tell(place: CommonOptions, plan: "ServicePlan", secret: "Secret") -> None:
    name = f"[{plan.host}]" if ":" in plan.host else plan.host
    address = f"http://{name}:{plan.port}"
    if place.json:
        say_json({"address": address, "secret": secret.place, "crawl": plan.crawl})
    if place.verbosity >= 0:
        click.echo(f"serving at {address}; the secret for write requests is in {secret.place}", err=True)
