"""`tamias worker`: workers for a crawl that others began, at its database or at its frontier service."""

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tamias.cli.console.options import CommonOptions, common, frontier_token, say_json, setting_options
from tamias.cli.console.progress import Display
from tamias.plugins import load

if TYPE_CHECKING:
    from tamias.crawl.store.progress import CrawlSnapshot
    from tamias.settings import Settings

WorkerTarget = tuple[str, str | None, str | None, bool, str | None]
"""A service's address as HOST:PORT, its token, a crawl, whether TLS is used, and certificates to trust."""
RunWorkers = Callable[[WorkerTarget, Path, "Settings", Callable[["CrawlSnapshot"], None]], None]
"""Runs workers in a folder for downloads until a signal comes, and shows a snapshot now and then."""


@click.command()
@click.option("--frontier", metavar="HOST:PORT", help="Connect to this service instead of a database.")
@setting_options("crawl.workers", "fetch.concurrency", "permit.allow_private", "archive.store")
@click.option("--crawl", "crawl_name", metavar="NAME", help="The crawl to work on, if it has a name.")
@click.option("--scratch", type=click.Path(path_type=Path), help="With --frontier: folder for downloads.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="With --frontier: file with the token of the service. [TAMIAS_TOKEN]",
)
@click.option("--tls", is_flag=True, help="With --frontier: connect with TLS.")
@click.option("--tls-ca", type=click.Path(path_type=Path), help="With --tls: certificates to trust, in PEM.")
@common
def command(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions, flags: dict[str, Any], frontier: str | None, crawl_name: str | None,
    scratch: Path | None, token_file: Path | None, tls: bool, tls_ca: Path | None,
) -> int:  # fmt: skip
    """Runs workers until you stop them. Their policy comes from the crawl.

    Example: tamias worker --db postgresql://tamias@db.example/tamias --store s3://bucket/tamias

    Example: tamias worker --frontier frontier.example:7071 --token-file token
    """
    own = place.settings(**flags).settings
    if frontier is None:
        return _at_database(place, crawl_name, own)
    run_workers: RunWorkers = load("remote_workers", "frontier")
    authority = str(tls_ca) if tls_ca else None
    target = (frontier, frontier_token(token_file), crawl_name, tls or tls_ca is not None, authority)
    with tempfile.TemporaryDirectory(prefix="tamias-worker-") as folder:
        run_workers(target, scratch or Path(folder), own, lambda now: say_json(now) if place.json else None)
    return 0


def _at_database(place: CommonOptions, crawl: str | None, own: "Settings") -> int:
    from tamias.crawl.plan.policy import CRAWL, Until
    from tamias.crawl.worker.supervisor import Supervisor
    from tamias.database.connect import Database
    from tamias.frontier.crawls import named

    buckets = own.frontier.buckets
    with closing(Database(place.data, place.db, create=False, buckets=buckets)) as database:
        with closing(database.session()) as session:
            number = CRAWL if crawl is None else named(session, crawl)
        with closing(Supervisor(place.data, place.db, own, until=Until.STOPPED, crawl=number)) as supervisor:
            end = asyncio.run(supervisor.run_until_signal(Display(place).show))
    if place.json:
        say_json(end)
    return 0
