"""`tamias demo`: a small Data Web on this machine, crawled before your eyes; needs no network."""

import asyncio
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from pyoxigraph import Quad

from tamias.cli.common import Place, common, say, say_json
from tamias.cli.progress import Display
from tamias.crawl.supervisor import Snapshot, Supervisor
from tamias.model.errors import UsageError
from tamias.model.seed import Seed

if TYPE_CHECKING:
    from tamias.bench.dataweb.server import DataWeb

MARK = "made-by-tamias-demo"
USUAL_FOLDER = Path("tamias-demo")


@click.command()
@click.option("--once", is_flag=True, help="End after the summary, also on a terminal.")
@click.option(
    "--nodes", type=click.IntRange(3, 200), default=12, show_default=True, help="Hosts of the Data Web."
)
@common
def command(place: Place, once: bool, nodes: int) -> int:  # noqa: ARG001 (pages to be served come with `serve`)
    """Builds a small Data Web on loopback addresses, crawls it, and compares with what is there.

    Example: tamias demo --once
    """
    from tamias.bench.dataweb.plan import make_plan
    from tamias.bench.dataweb.server import serving

    data = _fresh_folder(place)
    plan = make_plan(seed=1, nodes=nodes)
    with serving(plan) as web:
        if not place.json:
            say(f"A Data Web of {nodes} hosts, 127.0.0.x:{web.port}: Linked Data, dumps, pages, robots.txt.")
            say(f"$ tamias crawl {' '.join(web.seeds)} --allow-private --delay 0.1 --data {data}")
        found = _crawl(place, data, web.seeds)
        return _compare(place, data, web, found)


def _fresh_folder(place: Place) -> Path:
    source = click.get_current_context().get_parameter_source("data")
    data = USUAL_FOLDER if source is ParameterSource.DEFAULT else place.data
    if data.exists() and any(data.iterdir()) and not (data / MARK).exists():
        raise UsageError(f"{data} is not empty and was not made by a demo; choose another --data")
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    (data / MARK).touch()
    return data


def _crawl(place: Place, data: Path, seeds: tuple[str, ...]) -> Snapshot:
    settings = place.settings(permit__allow_private=True, fetch__delay=0.1).settings
    supervisor = Supervisor(data, place.db, settings, seeds)
    display = Display(place)
    try:
        supervisor.put_seeds([Seed(address=seed) for seed in seeds])
        return asyncio.run(supervisor.run(display.show))
    finally:
        display.close()
        supervisor.close()


def _compare(place: Place, data: Path, web: "DataWeb", end: Snapshot) -> int:
    from tamias.bench.dataweb.expected import missing
    from tamias.bench.dataweb.log import max_in_flight, requests_of_disallowed

    quads = _exported(place, data)
    lost = len(missing(web.expected.quads, quads))
    impolite = len(requests_of_disallowed(web.log, web.expected.disallowed))
    most = max(max_in_flight(web.log).values())
    ok = not lost and not impolite and most == 1
    if place.json:
        say_json(
            {
                "crawl": end,
                "expected": len(web.expected.quads),
                "missing": lost,
                "disallowed": impolite,
                "most_in_flight": most,
                "ok": ok,
            }
        )
        return 0 if ok else 1
    say()
    ways = ", ".join(f"{count} {word}" for word, count in sorted(end.outcomes.items()))
    say(f"visited    {end.visited} URLs in {end.seconds:.1f} s: {ways}")
    say(f"found      {len(web.expected.quads) - lost} of {len(web.expected.quads)} quads that the web holds")
    say(f"polite     {impolite} requests that robots.txt forbids, at most {most} at a time to one host")
    kept = sum(file.stat().st_size for file in (data / "rdf").iterdir())
    say(f"kept       {kept:,} bytes in {data / 'rdf'}")
    say()
    say("Look at it:")
    say(f"  tamias export --data {data} --format trig")
    say(f"  tamias export --data {data} --graph metadata")
    say(f"  tamias stats --data {data}")
    return 0 if ok else 1


def _exported(place: Place, data: Path) -> list[Quad]:
    from pyoxigraph import RdfFormat, parse

    from tamias.crawl.corpus import data_quads
    from tamias.database.connect import Database

    database = Database(data, place.db, create=False)
    session = database.session()
    try:
        text = b"".join(data_quads(session, data))
    finally:
        session.close()
        database.close()
    return list(parse(text, format=RdfFormat.N_QUADS))
