"""`python -m benchmarks NAME`: claims about speed and safety, as commands that anyone can repeat."""

import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json
from tamias.cli.main import run as run_command

PROGRAM = "python -m benchmarks"
F = TypeVar("F", bound=Callable[..., Any])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def command() -> None:
    """The benchmarks; each prints figures beside those of a named peer in the same run.

    Example: python -m benchmarks frontier --size 100000
    """
    # As at Ctrl-C: what was started is ended, what was mounted is unmounted.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def number(name: str, default: float, text: str) -> Callable[[F], F]:
    """An option for a number, whole if its default is, that must not be negative."""
    kind = click.FloatRange(min=0) if isinstance(default, float) else click.IntRange(min=0)
    return click.option(name, type=kind, default=default, show_default=True, help=text)


def file(*names: str, exists: bool = True, **words: Any) -> Callable[[F], F]:
    """An option for a file or folder."""
    return click.option(*names, type=click.Path(exists=exists, path_type=Path), **words)


SEED = number("--seed", 1, "The same seed gives the same chances.")
REFERENCE = file(
    "--reference", envvar="TAMIAS_URLFRONTIER_JAR", help="The jar of the Java frontier's service. [not run]"
)
INSTALL = click.option("--install-peers", is_flag=True, help="First install them into a cache folder.")


@command.command()
@file("--histories", help="A tar file, or a folder with a folder for each file, its versions by name. [made]")
@common
def archive(place: CommonOptions, histories: Path | None) -> int:
    """Size and reading time of stored versions after a repack, beside git, zstd, borg and restic.

    Example: python -m benchmarks archive
    """
    from benchmarks.archive.histories import run_histories

    return _print_report(place, run_histories(histories, _out(place)))


@command.command()
@number("--versions", 89, "Versions of the graph, one a day.")
@number("--triples", 10_000, "Triples of each, of which 1 % change every day.")
@number("--queries", 500, "Lookups at random times.")
@file("--histories", help="Measure the size of these instead: a folder for each file, its versions by name.")
@file("--ostrich", help="A folder with the built package ostrich-bindings for node. [skipped]")
@file("--hdt", help="A folder with the jar files of hdt-java. [skipped]")
@common
def history(
    place: CommonOptions, versions: int, triples: int, queries: int, histories: Path | None,
    ostrich: Path | None, hdt: Path | None,
) -> int:  # fmt: skip
    """A graph in many versions: its size, and lookups at a time, beside Oxigraph, OSTRICH and HDT.

    Example: python -m benchmarks history
    """
    from benchmarks.archive.graph_histories import run, run_real
    from benchmarks.measuring.workspace import workspace

    with workspace(None) as folder:
        if histories is not None:
            return _print_report(place, run_real(histories, folder / "data", _out(place)))
        return _print_report(
            place, run(versions, triples, queries, folder / "data", (ostrich, hdt), _out(place))
        )


@command.command()
@number("--resources", 20_000, "Small CSV files.")
@number("--hosts", 50, "Loopback addresses they are on.")
@common
def captures(place: CommonOptions, resources: int, hosts: int) -> int:
    """Processor time of a capture of a small watched resource, by process of a running service.

    Example: python -m benchmarks captures --resources 1500
    """
    from benchmarks.archive.captures import run

    return _print_report(place, run(resources, hosts, out=_out(place)))


@command.command()
@number("--resources", 20_000, "Watched resources.")
@number("--versions", 20, "Versions of each.")
@number("--rate", 200.0, "Captures that arrive a second.")
@number("--seconds", 60.0, "How long they arrive.")
@common
def catalogue(place: CommonOptions, resources: int, versions: int, rate: float, seconds: float) -> int:
    """Lag, size and restart of the SPARQL store while captures arrive and clients abandon cross products.

    The size is compared with that of the bulk load of the same archive, statement by statement. Then the
    sizes of the parts of the archive, and how long its pages take.

    Example: python -m benchmarks catalogue --resources 1000 --seconds 20
    """
    from benchmarks.archive.catalogue import run

    return _print_report(place, run(resources, versions, rate, seconds, out=_out(place)))


@command.command()
@click.option("--size", "sizes", type=int, multiple=True, help="URLs in the frontier. [0.1, 1 and 5 million]")
@click.option("--clients", type=int, multiple=True, help="Client processes. [1 and 8]")
@click.option("--grpc", is_flag=True, help="The service instead of the tables. [0.4 million URLs]")
@REFERENCE
@click.option("--queues", type=int, multiple=True, help="With --grpc: queues. [4000 and 40000]")
@click.option("--no-sync", is_flag=True, help="With --grpc: our service does not wait for the disk either.")
@common
def frontier(
    place: CommonOptions, sizes: tuple[int, ...], clients: tuple[int, ...], grpc: bool,
    reference: Path | None, queues: tuple[int, ...], no_sync: bool,
) -> int:  # fmt: skip
    """Put, lease and finish at growing sizes, beside the obvious one-table queue; or the gRPC service.

    Example: python -m benchmarks frontier --size 100000 --clients 1
    """
    if grpc:
        from benchmarks.frontier.grpc import experiment as service

        size = sizes[0] if sizes else service.URLS
        options = ("--no-sync", "DEFAULT") if no_sync else ()
        return _print_report(
            place, service.run(size, queues or service.QUEUES, reference, options, _out(place))
        )
    from benchmarks.frontier.experiment import CLIENTS, SIZES, run

    return _print_report(place, run(sizes or SIZES, clients or CLIENTS, None, _out(place)))


@command.command()
@number("--pages", 4000, "Pages of the static site.")
@number("--hosts", 200, "Addresses it is spread over.")
@common
def citus(place: CommonOptions, pages: int, hosts: int) -> int:
    """The same crawl on a Citus cluster and on a plain PostgreSQL server: their processor time and wall.

    TAMIAS_CITUS names a folder with PostgreSQL and the extension.

    Example: python -m benchmarks citus --pages 1000 --hosts 50
    """
    from benchmarks.cluster.costs import run

    return _print_report(place, run(pages, hosts, _out(place)))


@command.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--quick", is_flag=True, help="Small: a few minutes for all of them.")
@click.option("--full", is_flag=True, help="In the size that the promises name: half an hour for all.")
@SEED
@file("--hostile", help="What 'python -m benchmarks hostile --json' printed, so that it does not run again.")
@file("--scorecard", exists=False, help="Write the results as a page to this file.")
@click.option("--cluster", is_flag=True, help="Faults of a Citus cluster instead, named by TAMIAS_CITUS.")
@common
def faults(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions, names: tuple[str, ...], quick: bool, full: bool, seed: int, hostile: Path | None,
    scorecard: Path | None, cluster: bool,
) -> int:  # fmt: skip
    """Breaks one thing after another, F1 to F23, and holds a figure against each promise.

    The page of the last run is docs/benchmarks/reliability.md.

    Example: python -m benchmarks faults F8 disk-full --quick

    Example: python -m benchmarks faults --cluster node-killed
    """
    if cluster:
        from benchmarks.cluster.table import run_cluster
        from benchmarks.cluster.trial import Size

        size = Size(seconds=8, pages=20) if quick else Size()
        return _print_report(place, run_cluster(names, size, _out(place)))
    from benchmarks.faults.run import FULL, QUICK, USUAL, run

    share = FULL if full else QUICK if quick else USUAL
    return _print_report(
        place, run(names, share=share, seed=seed, hostile=hostile, scorecard=scorecard, out=_out(place))
    )


@command.command()
@number("--sites", 20, "Good sites among the attacks.")
@number("--pages", 60, "Pages of each good site.")
@number("--workers", 2, "Worker processes.")
@click.option("--attack", "only", multiple=True, help="Only this name or number, such as H5. [all]")
@click.option("--no-control", is_flag=True, help="Do not crawl the good sites alone first: no ratio.")
@click.option("--serve", type=click.IntRange(1, 65535), help="Only serve the attacks on this loopback port.")
@click.option("--crowd", is_flag=True, help="Ten good hosts in a crowd of bombs and traps instead.")
@number("--endpoints", 122, "Bombs in the crowd; 22 kinds.")
@common
def hostile(
    place: CommonOptions, *, sites: int, pages: int, workers: int, only: tuple[str, ...], no_control: bool,
    serve: int | None, crowd: bool, endpoints: int,
) -> int:  # fmt: skip
    """Good sites among attacks H1 to H29: what is contained, and what it costs. See docs/hostile-web.md.

    Example: python -m benchmarks hostile --attack H9 --sites 2 --pages 5 --no-control
    """
    if serve is not None:
        from tests.hostile.web.serving import serve as serve_by_hand

        serve_by_hand(serve, say)
        return 0
    from tests.hostile.web.run import run, run_crowd

    if crowd:
        crowded = run_crowd(_out(place), workers=workers, alone=not no_control, endpoints=endpoints)
        return _print_report(place, crowded)
    found = run(_out(place), sites=sites, pages=pages, workers=workers, alone=not no_control, only=only)
    return _print_report(place, found)


@command.command()
@number("--kills", 500, "Processes to kill during the crawl.")
@number("--urls", 30_000, "URLs of the synthetic web.")
@SEED
@common
def kills(place: CommonOptions, kills: int, urls: int, seed: int) -> int:
    """A synthetic crawl through the frontier alone, while workers, keeper and server are killed at random.

    Example: python -m benchmarks kills --kills 20 --urls 2000
    """
    from benchmarks.faults.kills.experiment import run

    return _print_report(place, run(kills=kills, urls=urls, seed=seed, out=_out(place)))


@command.command()
@number("--pages", 20_000, "Pages of the static site.")
@number("--hosts", 500, "Loopback addresses it is spread over.")
@number("--links", 40, "Links on each page.")
@click.option("--workers", type=int, help="Worker processes. [one for each core]")
@click.option("--peer", "peers", multiple=True, help="scrapy, wget, wget2, httrack, heritrix. [all]")
@INSTALL
@file("--site", exists=False, help="Keep the site here for the next run.")
@common
def crawl(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions, pages: int, hosts: int, links: int, workers: int | None, peers: tuple[str, ...],
    install_peers: bool, site: Path | None,
) -> int:  # fmt: skip
    """Crawls a static site behind nginx, beside Scrapy, wget, wget2, HTTrack and Heritrix.

    Example: python -m benchmarks crawl --pages 2000 --hosts 50
    """
    from benchmarks.crawl import peers as known
    from benchmarks.crawl.run import run

    if install_peers:
        known.install_peers()
    chosen = peers or tuple(known.PEERS)
    return _print_report(place, run(pages, hosts, links, workers, peers=chosen, data=site, out=_out(place)))


@command.command()
@number("--runs", 3, "Runs of each comparison.")
@click.option("--pages", type=int, multiple=True, help="Sizes of the static site. [3,000 and 20,000]")
@number("--nodes", 40, "Hosts of the web of small documents.")
@file("--histories", help="Real histories, as for 'archive'. [made]")
@number("--urls", 100_000, "URLs put into the frontier over gRPC.")
@REFERENCE
@INSTALL
@file("-o", "--output", "page", exists=False, help="Write the page to this file.")
@common
def report(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions, runs: int, pages: tuple[int, ...], nodes: int, histories: Path | None,
    urls: int, reference: Path | None, install_peers: bool, page: Path | None,
) -> int:  # fmt: skip
    """Every peer in one run, as ratios with their spread, on one page: docs/benchmarks/report.md.

    Example: python -m benchmarks report --runs 1 --pages 500 --nodes 5
    """
    from benchmarks.report import ReportOptions, run

    options = ReportOptions(
        runs=runs,
        nodes=nodes,
        histories=histories,
        urls=urls,
        jar=reference,
        install=install_peers,
        **({"pages": pages} if pages else {}),
    )
    return _print_report(place, run(options, page, _repeated(sys.argv[1:]), _out(place)))


@command.command()
@click.option(
    "--experiment", "experiments", type=click.Choice(["I", "II", "robots"]), multiple=True, help="[all]"
)
@click.option("--nodes", type=int, help="Hosts of the web. [as published: I 100, II 200]")
@click.option("--triples", type=int, help="Triples of each node. [as published: 1000; robots 100]")
@click.option("--seed", type=int, help="The same seed gives the same web. [that of the published runs]")
@number("--seconds", 1200.0, "The most one crawler may take.")
@file("--rdfa-suite", help="Folder of the W3C's RDFa test suite.")
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="NAME[=COMMAND]",
    help="scrapy, rdf-dereference, comunica, none; or a command with {seeds}, {output}, {scope}. [all]",
)
@INSTALL
@common
def dataweb(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions, experiments: tuple[str, ...], nodes: int | None, triples: int | None,
    seed: int | None, seconds: float, rdfa_suite: Path | None, peers: tuple[str, ...], install_peers: bool,
) -> int:  # fmt: skip
    """A Data Web as ORCA builds it, crawled beside Scrapy, Comunica and any crawler you name.

    Example: python -m benchmarks dataweb --experiment II --nodes 20 --peer scrapy
    """
    from benchmarks.dataweb.crawlers import rivals
    from benchmarks.dataweb.run import EXPERIMENTS, DataWebSize, run

    if install_peers:
        rivals.install_peers()
    size = DataWebSize(nodes, triples, seed, seconds)
    chosen = () if peers == ("none",) else peers or None
    return _print_report(
        place, run(experiments or EXPERIMENTS, size, peers=chosen, suite=rdfa_suite, out=_out(place))
    )


@command.command()
@number("--pages", 3000, "Pages to be visited.")
@number("--days", 365, "Days, a third of them for learning.")
@SEED
@common
def schedule(place: CommonOptions, pages: int, days: int, seed: int) -> int:
    """Freshness and versions caught by each rule of visiting at the same budget, beside an oracle.

    Example: python -m benchmarks schedule --pages 500 --days 120
    """
    from benchmarks.schedule import run

    return _print_report(place, run(pages, days, seed, out=_out(place)))


@command.command()
@number("--datasets", 20_000, "Datasets.")
@number("--versions", 160_000, "Their versions.")
@number("--documents", 1_000_000, "Crawled documents.")
@number("--repeats", 40, "Requests for each page.")
@common
def pages(place: CommonOptions, datasets: int, versions: int, documents: int, repeats: int) -> int:
    """How long every web page takes over a large archive: p50, p95 and the first request.

    Example: python -m benchmarks pages --datasets 2000 --versions 8000 --documents 20000
    """
    from benchmarks.serve.page_times import run

    return _print_report(place, run(datasets, versions, documents, repeats, out=_out(place)))


def _repeated(words: Sequence[str]) -> str:
    """The command, with names in place of paths that only this machine has."""
    return f"{PROGRAM} {shlex.join(Path(word).name if word.startswith('/') else word for word in words)}"


def _out(place: CommonOptions) -> Callable[[str], None]:
    return (lambda _line: None) if place.json else say


def _print_report(place: CommonOptions, report: dict[str, object]) -> int:
    if place.json:
        say_json(report)
    return 0 if report.get("ok", True) else 1


if __name__ == "__main__":
    run_command(command, PROGRAM)
