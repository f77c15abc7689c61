"""`tamias frontier`: the frontier as a service, for any crawler that speaks the URLFrontier API."""

from pathlib import Path

import click

from tamias.cli.console.options import CommonOptions, Duration, common, frontier_token, print_result
from tamias.model.errors import UsageError

_PATIENCE_SECONDS = 20.0
"""A call waits so long for a database that is away; later ones are refused at once."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=int, default=7071, show_default=True, help="The port; 0 takes any free port.")
@click.option(
    "--delay", type=Duration(0, 86_400), metavar="DURATION", help="Seconds between two visits to a queue."
)
@click.option("--tls-cert", type=click.Path(path_type=Path), help="Certificate chain in PEM, for TLS.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="The certificate's key.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with the token that clients must send. [TAMIAS_TOKEN]",
)
@click.option(
    "--threads", type=click.IntRange(1, 64), default=4, show_default=True, help="Database sessions."
)
@click.option("--buckets", metavar="FIRST-LAST", help="Serve only these buckets of the frontier.")
@click.option(
    "--shared-politeness",
    is_flag=True,
    help="New crawls of clients share a host's delay, block and window. [each crawl has its own]",
)
@click.option(
    "--no-sync",
    multiple=True,
    metavar="CRAWL",
    help="Answer changes to this crawl before they are on disk: a crash loses the last second of them.",
)
@click.option("--require", multiple=True, metavar="TAG", help="Return only URLs that have this tag.")
@click.option("--forbid", multiple=True, metavar="TAG", help="Skip URLs that have this tag.")
@common
def command(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions, host: str, port: int, delay: float | None, tls_cert: Path | None,
    tls_key: Path | None,
    token_file: Path | None, threads: int, buckets: str | None, shared_politeness: bool,
    no_sync: tuple[str, ...], require: tuple[str, ...], forbid: tuple[str, ...],
) -> None:  # fmt: skip
    """Serves the frontier over gRPC: the URLFrontier API, version 2.6, on the tables the workers use.

    Example: tamias frontier --port 7071
    """
    from contextlib import closing

    from tamias.archive.blobs.store import choose_store
    from tamias.database.connect import Database
    from tamias.database.roles import Role
    from tamias.features.urlfrontier.held import Holds
    from tamias.features.urlfrontier.server import Options, serve
    from tamias.frontier.lease_filter import Interest, LeaseFilter, parse_section
    from tamias.frontier.service import set_usual_delay
    from tamias.permit.addresses import is_loopback

    settings = place.settings(frontier__require=require or None, frontier__forbid=forbid or None).settings
    frontier = settings.frontier
    lease_filter = LeaseFilter(
        section=None if buckets is None else parse_section(buckets),
        interest=Interest(frontier.require, frontier.forbid) if frontier.require or frontier.forbid else None,
    )
    token = frontier_token(token_file)
    if token is None and not is_loopback(host):
        raise UsageError(
            f"{host} can be reached by others: choose a token first (TAMIAS_TOKEN or --token-file FILE)"
        )
    options = Options(
        host=host, port=port, token=token, certificate=tls_cert, key=tls_key, threads=threads,
        session_names=frozenset(settings.filters.session_names), data=place.data,
        own=settings, lease_filter=lease_filter,
        shared_politeness=shared_politeness, unsynced=frozenset(no_sync),
    )  # fmt: skip
    with closing(
        Database(
            place.data, place.db, buckets=frontier.buckets, patience=_PATIENCE_SECONDS, role=Role.FRONTIER
        )
    ) as database:
        if delay is not None:
            with closing(database.session()) as session:
                set_usual_delay(session, int(delay * 1000))
        with closing(database.session()) as session:
            choose_store(session, settings.archive.store)  # before workers deliver what goes there
            Holds(session, lease_filter)  # refuses a section that is not there, before anybody is served
        serve(database, options, lambda address: _tell(place, address))


def _tell(place: CommonOptions, address: str) -> None:
    print_result(place, {"address": address}, [f"the frontier listens on {address}"])
