"""`python -m benchmarks NAME`: claims about speed and safety, as commands that anyone can repeat."""

import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json
from tamias.cli.main import run as run_command

PROGRAM = "python -m benchmarks"


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def command() -> None:
    """The benchmarks; each prints figures beside those of a named peer in the same run.

    Example: python -m benchmarks frontier --size 100000
    """
    # As at Ctrl-C: what was started is ended, what was mounted is unmounted.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@command.command()
@click.option("--size", type=int, default=20_000_000, show_default=True, help="Bytes of a version.")
@click.option("--versions", type=int, default=10, show_default=True, help="Versions of each dataset.")
@click.option("--resources", type=int, default=100_000, show_default=True, help="Small resources of 50 kB.")
@click.option(
    "--histories",
    metavar="PATH",
    help="Measure a repack of these histories beside git instead: a tar file or a folder with a folder for "
    "each file, its versions in the order of their names; 'made' makes some.",
)
@click.option("--memory", type=int, metavar="BYTES", help="Measure memory with a CSV of this size instead.")
@common
def archive(
    place: CommonOptions, size: int, versions: int, resources: int, histories: str | None, memory: int | None
) -> int:
    """Size, speed and memory of keeping versions, beside zstd file by file, borg and restic.

    Example: python -m benchmarks archive --size 2000000 --resources 1000
    """
    if memory is not None:
        from benchmarks.archive.memory import run_memory

        return _print_report(place, run_memory(memory, _out(place)))
    if histories is not None:
        from benchmarks.archive.histories import run_histories

        named = None if histories == "made" else Path(histories)
        return _print_report(place, run_histories(named, _out(place)))
    from benchmarks.archive import run

    return _print_report(place, run(size, versions, resources, out=_out(place)))


@command.command()
@click.option("--resources", type=int, default=20_000, show_default=True, help="Small CSV files.")
@click.option("--hosts", type=int, default=50, show_default=True, help="Loopback addresses they are on.")
@common
def captures(place: CommonOptions, resources: int, hosts: int) -> int:
    """Processor time of a capture of a small watched resource, by process of a running service.

    Example: python -m benchmarks captures --resources 1500
    """
    from benchmarks.archive.captures import run

    return _print_report(place, run(resources, hosts, out=_out(place)))


@command.command()
@click.option("--resources", type=int, default=20_000, show_default=True, help="Watched resources.")
@click.option("--versions", type=int, default=20, show_default=True, help="Versions of each.")
@click.option("--rate", type=float, default=200.0, show_default=True, help="Captures that arrive a second.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="How long they arrive.")
@click.option(
    "--captures",
    type=int,
    default=0,
    show_default=True,
    help="First also: small files that a service captures twice, as in 'captures'.",
)
@common
def catalogue(
    place: CommonOptions, resources: int, versions: int, rate: float, seconds: float, captures: int
) -> int:
    """Lag, size and restart of the SPARQL store while captures arrive and clients abandon cross products.

    The size is compared with that of the bulk load of the same archive, statement by statement. Then the
    sizes of the parts of the archive, and how long its pages take.

    Example: python -m benchmarks catalogue --resources 1000 --seconds 20
    """
    from benchmarks.archive.catalogue import run

    return _print_report(place, run(resources, versions, rate, seconds, captures, out=_out(place)))


@command.command()
@click.option("--size", "sizes", type=int, multiple=True, help="URLs in the frontier. [0.1, 1 and 5 million]")
@click.option("--clients", type=int, multiple=True, help="Client processes. [1 and 8]")
@click.option("--grpc", is_flag=True, help="The service instead of the tables. [0.4 million URLs]")
@click.option("--target", help="With --grpc: measure the empty URLFrontier server at this HOST:PORT instead.")
@click.option(
    "--reference",
    type=click.Path(exists=True, path_type=Path),
    help="With --grpc: the jar of the Java reference's service, measured in the same run.",
)
@click.option("--queues", type=int, multiple=True, help="With --grpc: queues. [4000 and 40000]")
@click.option("--no-sync", is_flag=True, help="With --grpc: our service does not wait for the disk either.")
@common
def frontier(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions, sizes: tuple[int, ...], clients: tuple[int, ...], grpc: bool, target: str | None,
    reference: Path | None, queues: tuple[int, ...], no_sync: bool,
) -> int:  # fmt: skip
    """Put, lease and finish at growing sizes, beside the obvious one-table queue; or the gRPC service.

    Example: python -m benchmarks frontier --size 100000 --clients 1
    """
    if grpc:
        from benchmarks.frontier import grpc as service

        size = sizes[0] if sizes else service.URLS
        options = ("--no-sync", "DEFAULT") if no_sync else ()
        return _print_report(
            place, service.run(size, queues or service.QUEUES, target, reference, options, _out(place))
        )
    from benchmarks.frontier import CLIENTS, SIZES, run

    return _print_report(place, run(sizes or SIZES, clients or CLIENTS, None, _out(place)))


@command.command()
@click.option("--size", type=int, default=1_000_000, show_default=True, help="URLs in the table.")
@click.option("--finished", type=int, default=300_000, show_default=True, help="URLs that are finished.")
@click.option("--hosts", type=int, default=10_000, show_default=True, help="Hosts that they are on.")
@common
def finishing(place: CommonOptions, size: int, finished: int, hosts: int) -> int:
    """What a finished URL costs the table of URLs, in the shapes that the table could have.

    Example: python -m benchmarks finishing --size 100000 --finished 20000 --hosts 1000
    """
    from benchmarks.frontier.shapes import run

    return _print_report(place, run(size, finished, hosts, _out(place)))


@command.command()
@click.option("--size", "sizes", type=int, multiple=True, help="URLs in the frontier. [1 and 20 million]")
@click.option("--finished", type=int, default=10_000_000, show_default=True, help="URLs that are finished.")
@click.option("--hosts", type=int, default=10_000, show_default=True, help="Hosts that they are on.")
@common
def growth(place: CommonOptions, sizes: tuple[int, ...], finished: int, hosts: int) -> int:
    """What a lease and a finish take in a frontier of many million URLs, before and after finishes.

    Example: python -m benchmarks growth --size 100000 --finished 50000 --hosts 1000
    """
    from benchmarks.frontier.growth import SIZES, run

    return _print_report(place, run(sizes or SIZES, hosts, finished, _out(place)))


@command.command()
@click.option("--size", type=int, default=200_000, show_default=True, help="URLs on the measured server.")
@click.option("--shards", type=int, multiple=True, help="Sizes of cluster to simulate. [1, 2, 4, ... 64]")
@click.option("--workers", type=int, default=8, show_default=True, help="Workers for each shard.")
@common
def cluster(place: CommonOptions, size: int, shards: tuple[int, ...], workers: int) -> int:
    """Simulates a frontier on many servers from costs measured on one in the same run.

    Example: python -m benchmarks cluster --size 50000 --shards 1 --shards 16
    """
    from benchmarks.frontier.cluster.run import SHARDS, run

    return _print_report(place, run(size, shards or SHARDS, _out(place), workers_each=workers))


@command.command()
@click.option("--pages", type=int, default=4000, show_default=True, help="Pages of the static site.")
@click.option("--hosts", type=int, default=200, show_default=True, help="Addresses it is spread over.")
@common
def citus(place: CommonOptions, pages: int, hosts: int) -> int:
    """The same crawl on a Citus cluster and on a plain PostgreSQL server: their processor time and wall.

    Citus is built by 'make cluster-test'.

    Example: python -m benchmarks citus --pages 1000 --hosts 50
    """
    from benchmarks.frontier.cluster.citus import run

    return _print_report(place, run(pages, hosts, _out(place)))


@command.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--quick", is_flag=True, help="Small: a few minutes for all of them.")
@click.option(
    "--full", is_flag=True, help="In the size that the promises name: half an hour for all of them."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same chances.")
@click.option(
    "--hostile",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What 'python -m benchmarks hostile --json' printed, so that it does not run again.",
)
@click.option(
    "--soak",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What 'python -m benchmarks soak --json' printed, for the page.",
)
@click.option(
    "--scorecard", type=click.Path(path_type=Path), help="Write the results as a page to this file."
)
@click.option(
    "--cluster", is_flag=True, help="Faults of a Citus cluster instead; 'make cluster-test' builds it."
)
@common
def faults(  # noqa: PLR0917 (click passes them by name)
    place: CommonOptions, names: tuple[str, ...], quick: bool, full: bool, seed: int, hostile: Path | None,
    soak: Path | None, scorecard: Path | None, cluster: bool,
) -> int:  # fmt: skip
    """Breaks one thing after another, F1 to F14, and holds a figure against each promise.

    The page of the last run is docs/reliability.md.

    Example: python -m benchmarks faults F8 disk-full --quick

    Example: python -m benchmarks faults --cluster node-killed
    """
    if cluster:
        from benchmarks.faults.cluster.table import run_cluster
        from benchmarks.faults.cluster.trial import Size

        size = Size(seconds=8, pages=20) if quick else Size()
        return _print_report(place, run_cluster(names, size, _out(place)))
    from benchmarks.faults.run import FULL, QUICK, USUAL, run

    share = FULL if full else QUICK if quick else USUAL
    found = run(
        names, share=share, seed=seed, hostile=hostile, soak=soak, scorecard=scorecard, out=_out(place)
    )
    return _print_report(place, found)


@command.command()
@click.option("--sites", type=int, default=20, show_default=True, help="Good sites among the attacks.")
@click.option("--pages", type=int, default=60, show_default=True, help="Pages of each good site.")
@click.option("--workers", type=int, default=2, show_default=True, help="Worker processes.")
@click.option("--attack", "only", multiple=True, help="Only this name or number, such as H5. [all]")
@click.option("--no-control", is_flag=True, help="Do not crawl the good sites alone first: no ratio.")
@click.option("--serve", type=click.IntRange(1, 65535), help="Only serve the attacks on this loopback port.")
@click.option("--crowd", is_flag=True, help="Ten good hosts in a crowd of bombs and traps instead.")
@click.option("--endpoints", type=int, default=122, show_default=True, help="Bombs in the crowd; 22 kinds.")
@common
def hostile(
    place: CommonOptions, *, sites: int, pages: int, workers: int, only: tuple[str, ...], no_control: bool,
    serve: int | None, crowd: bool, endpoints: int,
) -> int:  # fmt: skip
    """Good sites among attacks H1 to H29: what is contained, and what it costs. See docs/hostile-web.md.

    Example: python -m benchmarks hostile --attack H9 --sites 2 --pages 5 --no-control
    """
    if serve is not None:
        from benchmarks.hostile.serving import serve as serve_by_hand

        serve_by_hand(serve, say)
        return 0
    from benchmarks.hostile.run import run, run_crowd

    if crowd:
        crowded = run_crowd(_out(place), workers=workers, alone=not no_control, endpoints=endpoints)
        return _print_report(place, crowded)
    found = run(_out(place), sites=sites, pages=pages, workers=workers, alone=not no_control, only=only)
    return _print_report(place, found)


@command.command()
@click.option("--kills", type=int, default=500, show_default=True, help="Processes to kill during the crawl.")
@click.option("--urls", type=int, default=30_000, show_default=True, help="URLs of the synthetic web.")
@click.option(
    "--seed", type=int, default=1, show_default=True, help="The same seed gives the same experiment."
)
@common
def kills(place: CommonOptions, kills: int, urls: int, seed: int) -> int:
    """A synthetic crawl through the frontier alone, while workers, keeper and server are killed at random.

    Example: python -m benchmarks kills --kills 20 --urls 2000
    """
    from benchmarks.faults.kills import run

    return _print_report(place, run(kills=kills, urls=urls, seed=seed, out=_out(place)))


@command.command()
@click.option("--pages", type=int, default=20_000, show_default=True, help="Pages of the static site.")
@click.option(
    "--hosts", type=int, default=500, show_default=True, help="Loopback addresses it is spread over."
)
@click.option("--links", type=int, default=40, show_default=True, help="Links on each page.")
@click.option("--workers", type=int, help="Worker processes. [one for each core]")
@click.option(
    "--peer", "peers", multiple=True, help="Only these peers: scrapy, wget, wget2, httrack, heritrix. [all]"
)
@click.option("--install-peers", is_flag=True, help="First install Scrapy and Heritrix into a cache folder.")
@click.option("--site", type=click.Path(path_type=Path), help="Keep the site here for the next run.")
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
    return _print_report(
        place,
        run(pages, hosts, links, workers, peers=peers or tuple(known.PEERS), data=site, out=_out(place)),
    )


@command.command()
@click.option("--runs", type=int, default=3, show_default=True, help="Runs of each comparison.")
@click.option("--pages", type=int, multiple=True, help="Sizes of the static site. [3,000 and 20,000]")
@click.option("--nodes", type=int, default=40, show_default=True, help="Hosts of the web of small documents.")
@click.option(
    "--histories",
    type=click.Path(path_type=Path, exists=True),
    help="Real histories, as for 'archive'. [made]",
)
@click.option(
    "--urls", type=int, default=100_000, show_default=True, help="URLs put into the frontier over gRPC."
)
@click.option(
    "--reference",
    type=click.Path(path_type=Path, exists=True),
    help="The jar of the Java reference's service. [its rows are empty]",
)
@click.option("--install-peers", is_flag=True, help="First install them into a cache folder of their own.")
@click.option("-o", "--output", "page", type=click.Path(path_type=Path), help="Write the page to this file.")
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
    "--experiment",
    "experiments",
    type=click.Choice(["I", "II", "kinds", "robots", "recrawl", "scale"]),
    multiple=True,
    help="May be repeated. [all but scale]",
)
@click.option("--nodes", type=int, help="Hosts of the web. [as published: I 100, II 200]")
@click.option("--triples", type=int, help="Triples of each node. [as published: 1000; robots 100]")
@click.option("--seed", type=int, help="The same seed gives the same web. [that of the published runs]")
@click.option("--pages", type=int, default=1_000_000, show_default=True, help="Pages of the scale run.")
@click.option("--hosts", type=int, default=10_000, show_default=True, help="Hosts of the scale run.")
@click.option("--seconds", type=float, default=1200, show_default=True, help="The most one crawler may take.")
@click.option(
    "--max-time", type=float, default=1200, show_default=True, help="Seconds of each crawl of the scale run."
)
@click.option(
    "--known",
    type=int,
    default=0,
    show_default=True,
    help="Then fill its frontier with so many URLs and go on.",
)
@click.option("--rdfa-suite", type=click.Path(path_type=Path), help="Folder of the W3C's RDFa test suite.")
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="NAME[=COMMAND]",
    help="scrapy, rdf-dereference, comunica, wget, none; or a command with {seeds}, {output}, {scope}. [all]",
)
@click.option("--install-peers", is_flag=True, help="First install them into a cache folder of their own.")
@click.option("--report", type=click.Path(path_type=Path), help="Folder for report.html and report.md.")
@click.option("--profile", is_flag=True, help="Tell where the time goes, by step of a URL's path.")
@common
def dataweb(  # noqa: PLR0913, PLR0917 (click passes them by name)
    place: CommonOptions, experiments: tuple[str, ...], nodes: int | None, triples: int | None,
    seed: int | None,
    pages: int, hosts: int, seconds: float, max_time: float, known: int, rdfa_suite: Path | None,
    peers: tuple[str, ...], install_peers: bool, report: Path | None, profile: bool,
) -> int:  # fmt: skip
    """A Data Web as ORCA builds it, crawled beside Scrapy, Comunica, wget and any crawler you name.

    Example: python -m benchmarks dataweb --experiment II --nodes 20 --peer scrapy --report report
    """
    from benchmarks.dataweb.crawlers import rivals
    from benchmarks.dataweb.run import SHORT, DataWebSize, run

    if install_peers:
        rivals.install_peers()
    size = DataWebSize(nodes, triples, seed, pages, hosts, seconds, max_time, known)
    chosen = () if peers == ("none",) else peers or None
    found = run(
        experiments or SHORT,
        size,
        peers=chosen,
        suite=rdfa_suite,
        report=report,
        profile=profile,
        out=_out(place),
        command=_repeated(sys.argv[1:]),
    )
    return _print_report(place, found)


@command.command()
@click.option("--triples", type=int, default=200_000, show_default=True, help="Triples in each document.")
@common
def formats(place: CommonOptions, triples: int) -> int:
    """Triples a second of every format through analysis and storing, beside the bare parsers.

    Example: python -m benchmarks formats --triples 20000
    """
    from benchmarks.formats import run

    return _print_report(place, run(triples, out=_out(place)))


@command.command()
@click.option("--datasets", type=int, default=10_000, show_default=True, help="Datasets of the large portal.")
@click.option("--small", type=int, default=2_000, show_default=True, help="Datasets of the small one.")
@common
def portal(place: CommonOptions, datasets: int, small: int) -> int:
    """Datasets a second from a local CKAN, and its memory at two sizes, beside a plain loop.

    Example: python -m benchmarks portal --datasets 5000 --small 1000
    """
    from benchmarks.harvesters.portal import run

    return _print_report(place, run(datasets, small, out=_out(place)))


@command.command()
@click.option("--datasets", type=int, default=10_000, show_default=True, help="Datasets of each portal.")
@click.option("--kind", "kinds", multiple=True, help="ckan, oai-pmh or dcat. [all of them]")
@common
def harvesters(place: CommonOptions, datasets: int, kinds: tuple[str, ...]) -> int:
    """Requests and processor time of a second harvest of an unchanged portal, beside the first.

    Example: python -m benchmarks harvesters --datasets 1000 --kind ckan
    """
    from benchmarks.harvesters.second import run

    return _print_report(place, run(datasets, kinds, out=_out(place)))


@command.command()
@click.option("--pages", type=int, default=3000, show_default=True, help="Pages to be visited.")
@click.option("--days", type=int, default=365, show_default=True, help="Days, a third of them for learning.")
@click.option(
    "--seed", type=int, default=1, show_default=True, help="The same seed gives the same experiment."
)
@click.option("--continuous", is_flag=True, help="A continuous crawl on the real frontier, with a budget.")
@common
def schedule(place: CommonOptions, pages: int, days: int, seed: int, continuous: bool) -> int:
    """Freshness and versions caught by each rule of visiting at the same budget, beside an oracle.

    Example: python -m benchmarks schedule --pages 500 --days 120

    Example: python -m benchmarks schedule --continuous --pages 100000 --days 30
    """
    if continuous:
        from benchmarks.schedule import continuous as month

        return _print_report(place, month.run(pages, days, seed, out=_out(place)))
    from benchmarks.schedule import run

    return _print_report(place, run(pages, days, seed, out=_out(place)))


@command.command()
@click.option("--minutes", type=click.FloatRange(min=0.1), default=30.0, show_default=True, help="How long.")
@click.option("--hosts", type=click.IntRange(1, 200), default=16, show_default=True, help="Hosts of the web.")
@click.option("--pages", type=click.IntRange(1), default=8, show_default=True, help="Pages of each host.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same chances.")
@common
def soak(place: CommonOptions, minutes: float, hosts: int, pages: int, seed: int) -> int:
    """A changing web is archived while processes die and join, the database is killed and the disk fills.

    Example: python -m benchmarks soak --minutes 5
    """
    from benchmarks.faults.soak import run

    return _print_report(place, run(minutes=minutes, seed=seed, hosts=hosts, pages=pages, out=_out(place)))


@command.command()
@click.option("--datasets", type=click.IntRange(1), default=100_000, show_default=True, help="Datasets.")
@click.option(
    "--versions", type=click.IntRange(1), default=800_000, show_default=True, help="Versions of all."
)
@click.option("--seconds", type=click.FloatRange(1), default=5, show_default=True, help="For each route.")
@click.option(
    "--catalogue",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    help="Datasets in the SPARQL store, which takes long to be filled.",
)
@click.option(
    "--silent",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Connections that send nothing.",
)
@common
def serve(
    place: CommonOptions, datasets: int, versions: int, seconds: float, catalogue: int, silent: int
) -> int:  # fmt: skip
    """Requests a second of the service over a large archive, by wrk, beside a bare Starlette handler.

    Example: python -m benchmarks serve --datasets 2000 --versions 16000 --seconds 2
    """
    from benchmarks.serve import run

    return _print_report(place, run(datasets, versions, seconds, catalogue, silent, out=_out(place)))


@command.command()
@click.option("--datasets", type=click.IntRange(1), default=20_000, show_default=True, help="Datasets.")
@click.option(
    "--versions", type=click.IntRange(1), default=160_000, show_default=True, help="Their versions."
)
@click.option(
    "--documents", type=click.IntRange(200), default=1_000_000, show_default=True, help="Crawled documents."
)
@click.option(
    "--repeats", type=click.IntRange(2), default=40, show_default=True, help="Requests for each page."
)
@common
def pages(place: CommonOptions, datasets: int, versions: int, documents: int, repeats: int) -> int:
    """How long every web page takes over a large archive: p50, p95 and the first request.

    Example: python -m benchmarks pages --datasets 2000 --versions 8000 --documents 20000
    """
    from benchmarks.serve.page_times import run

    return _print_report(place, run(datasets, versions, documents, repeats, out=_out(place)))


@command.command()
@click.option("--triples", type=int, default=1_000_000, show_default=True, help="Statements of the endpoint.")
@click.option("--cap", type=int, default=10_000, show_default=True, help="The most rows it gives at once.")
@common
def sparql(place: CommonOptions, triples: int, cap: int) -> int:
    """Copies a SPARQL endpoint that caps its answers, beside a plain loop of LIMIT and OFFSET.

    Example: python -m benchmarks sparql --triples 50000 --cap 1000
    """
    from benchmarks.harvesters.sparql import run

    return _print_report(place, run(triples, _out(place), cap=cap))


@command.command()
@click.option("--hosts", type=click.IntRange(40, 10_000), default=1000, show_default=True, help="Hosts.")
@click.option(
    "--pages", type=click.IntRange(5, 1000), default=20, show_default=True, help="Pages of each host."
)
@click.option(
    "--of-kind", type=click.IntRange(1), default=50, show_default=True, help="Hosts with what is looked for."
)
@click.option(
    "--strategies",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default="examples/strategies",
    show_default=True,
    help="Folder of keywords.sql, language.sql and semantic.sql.",
)
@common
def strategy(place: CommonOptions, hosts: int, pages: int, of_kind: int, strategies: Path) -> int:
    """How soon crawls by the example strategies find what they look for, beside a breadth-first one.

    Example: python -m benchmarks strategy --hosts 100 --pages 10 --of-kind 6
    """
    from benchmarks.strategy import run
    from benchmarks.strategy.web import TopicWeb

    return _print_report(place, run(TopicWeb(hosts, pages, of_kind), strategies.absolute(), out=_out(place)))


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
