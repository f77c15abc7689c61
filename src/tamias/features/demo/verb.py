"""`tamias demo`: a small Data Web on this machine, crawled, archived and served; needs no network."""

import asyncio
import shutil
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from click.core import ParameterSource

import tamias
from tamias.cli.console.options import CommonOptions, common, count_of, say, say_json, session_at
from tamias.cli.console.progress import Display, by_outcome
from tamias.crawl.store.progress import CrawlSnapshot
from tamias.crawl.worker.supervisor import Supervisor
from tamias.model.errors import UsageError
from tamias.model.item import Seed
from tamias.settings import Settings

if TYPE_CHECKING:
    from tamias.features.demo.server import DataWeb
    from tamias.model.diff import Diff

MARK = "made-by-tamias-demo"
USUAL_FOLDER = Path("tamias-demo")
USUAL_PORT = 8080
DAYS = 3


class Crawled(msgspec.Struct, frozen=True, kw_only=True):
    """The crawl beside what is there."""

    crawl: CrawlSnapshot
    expected: int
    missing: int
    disallowed: int
    most_in_flight: int

    @property
    def ok(self) -> bool:
        """Complete and polite."""
        return not self.missing and not self.disallowed and self.most_in_flight == 1


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """The datasets under watch."""

    resources: int
    versions: int
    bytes: int
    changing: str
    """The address of one that changes."""
    diff: "Diff"
    """Its last change."""


@click.command()
@click.option("--once", is_flag=True, help="Exit after the summary, even on a terminal.")
@click.option(
    "--nodes", type=click.IntRange(3, 200), default=12, show_default=True, help="Hosts of the Data Web."
)
@common
def command(place: CommonOptions, once: bool, nodes: int) -> int:
    """Builds a small Data Web on loopback addresses, crawls and archives it, and serves the web pages.

    Compares the result with the web. Without a terminal, or with --once, it ends after that.

    Example: tamias demo --once
    """
    from tamias.features.demo.plan import make_plan
    from tamias.features.demo.server import serving

    place = msgspec.structs.replace(place, data=_fresh_folder(place))
    settings = place.settings(permit__allow_private=True, fetch__delay=0.1).settings
    with serving(make_plan(seed=1, nodes=nodes)) as web:
        if not place.json:
            say(f"A Data Web of {nodes} hosts, 127.0.0.x:{web.port}: Linked Data, dumps, pages, robots.txt.")
            say(f"$ tamias crawl {' '.join(web.seeds)} --allow-private --delay 0.1 --data {place.data}")
        crawled = _crawl(place, settings, web)
        archived = _archive(place, web)
        _tell(place, crawled, archived)
        if not (once or place.json) and sys.stdout.isatty():
            _serve(place, settings)
    return 0 if crawled.ok else 1


def _fresh_folder(place: CommonOptions) -> Path:
    source = click.get_current_context().get_parameter_source("data")
    data = USUAL_FOLDER if source is ParameterSource.DEFAULT else place.data
    if data.exists() and any(data.iterdir()) and not (data / MARK).exists():
        raise UsageError(f"{data} is not empty and was not created by a demo; choose another --data")
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    (data / MARK).touch()
    return data


def _crawl(place: CommonOptions, settings: Settings, web: "DataWeb") -> Crawled:
    from pyoxigraph import RdfFormat, parse

    from tamias.features.demo.server import max_in_flight, requests_of_disallowed
    from tamias.features.demo.web import missing
    from tamias.features.exports.corpus import data_quads

    with closing(Supervisor(place.data, place.db, settings)) as supervisor:
        supervisor.put_seeds([Seed(address=seed) for seed in web.seeds])
        end = asyncio.run(supervisor.run_until_signal(_silent if place.json else Display(place).show))
    with session_at(place) as session:
        found = parse(b"".join(data_quads(session, place.data)), format=RdfFormat.N_QUADS)
    return Crawled(
        crawl=end,
        expected=len(web.expected.quads),
        missing=len(missing(web.expected.quads, found)),
        disallowed=len(requests_of_disallowed(web.log, web.expected.disallowed)),
        most_in_flight=max(max_in_flight(web.log).values()),
    )


def _archive(place: CommonOptions, web: "DataWeb") -> Archived:
    """Puts some documents under watch and visits them each day, on which two of them have changed."""
    from tamias.features.demo.web import put_watched

    changing = put_watched(web.web, 0)
    watched = (*changing, *web.seeds)
    if not place.json:
        say()
        say(f"$ tamias add {' '.join(watched)} --data {place.data}")
        recrawl = f"$ tamias crawl --recrawl --allow-private --data {place.data}"
        say(f"{recrawl}    # {DAYS} times; in between, two of them change")
    with tamias.Archive(place.db or place.data, data=place.data) as archive:
        archive.add(*watched)
        for day in range(DAYS):
            put_watched(web.web, day)
            archive.visit(*watched, allow_private=True, delay=0.1)
        versions = [version for url in watched for version in archive.versions(url)]
        return Archived(
            resources=len(watched),
            versions=len(versions),
            bytes=sum(version.byte_size for version in versions),
            changing=changing[0],
            diff=archive.diff(changing[0]),
        )


def _silent(_: CrawlSnapshot) -> None:
    """Shows nothing."""


def _tell(place: CommonOptions, crawled: Crawled, archived: Archived) -> None:
    if place.json:
        say_json({**msgspec.to_builtins(crawled), "archive": archived, "ok": crawled.ok})
        return
    from tamias.model.diff import in_words

    end = crawled.crawl
    found = crawled.expected - crawled.missing
    size = sum(file.stat().st_size for file in (place.data / "rdf").iterdir())
    say()
    say(f"visited    {end.visited:,} URLs in {end.seconds:.1f} s: {by_outcome(end.outcomes)}")
    say(f"found      {found:,} of {crawled.expected:,} quads that the web contains")
    say(
        f"polite     {crawled.disallowed} requests that robots.txt forbids, "
        f"at most {crawled.most_in_flight} at a time to one host"
    )
    say(f"stored     {size:,} bytes in {place.data / 'rdf'}")
    say(
        f"archived   {count_of(archived.versions, 'version')} of {count_of(archived.resources, 'resource')}, "
        f"{archived.bytes:,} bytes"
    )
    say(f"changed    {archived.changing}: {in_words(archived.diff)} at the last visit")
    say()
    say("Next steps:")
    url = archived.changing
    for words in ("export --format trig", "stats", f"versions {url}", f"diff {url}", "serve"):
        say(f"  tamias {words} --data {place.data}")


def _serve(place: CommonOptions, settings: Settings) -> None:
    from tamias.features.service.http.callers import find_secret
    from tamias.features.service.run import ServicePlan, run

    plan = ServicePlan(
        data=place.data.absolute(),
        db=place.db,
        settings=settings,
        host="127.0.0.1",
        port=_port(),
        crawl=False,
    )

    def ready() -> None:
        say()
        say(f"The web pages are at http://127.0.0.1:{plan.port}/. Press Ctrl-C to stop.")

    with suppress(KeyboardInterrupt):
        run(plan, find_secret(place.data, None), ready)


def _port() -> int:
    """The usual one, or where nobody listens."""
    for port in (USUAL_PORT, 0):
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(trial.getsockname()[1])
    raise UsageError("no port of 127.0.0.1 is free")
