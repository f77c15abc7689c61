"""Plug-ins that a stranger installs: a package with a part of every kind, met by one ordinary crawl."""

import json
from textwrap import dedent

import pytest
from pyoxigraph import RdfFormat, parse

from tests.messages import unsaid

MODULE = """
import os
from hashlib import sha256
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad

from tamias.model.capture import Body, Capture, Hop, Request
from tamias.model.finding import Links, Quads
from tamias.model.finding import Harvest, HarvestEnd, HarvestStep
from tamias.model.capture import Outcome
from tamias.model.item import Seed
from tamias.plugins import Feature
from tamias.sinks.segments.segment_files import SegmentWriter


def quad(subject, text):
    return Quad(NamedNode(subject), NamedNode("http://example.org/says"), Literal(text))


class AcornSeeds:
    def seeds(self, argument):
        for line in Path(argument).read_text().splitlines():
            yield Seed(address=line.removeprefix("acorn "))


class SecretFilter:
    def __init__(self, settings):
        self.schemes = settings.schemes

    def refuse(self, url, depth):
        return "secret: squirrels only" if "/secret/" in url else None


class AcornAnalyser:
    media_types = frozenset({"application/vnd.acorn+json"})

    def analyse(self, document):
        yield Quads([quad(document.url, document.stream.read().decode())])


class HazelAnalyser:
    media_types = frozenset({"application/x-hazel"})

    def analyse(self, document):
        yield Quads([quad(document.url, document.stream.read().decode()[5:])])


class BurrowFetcher:
    schemes = frozenset({"burrow"})

    def __init__(self, options, *, forbidden, now, retry_after):
        self._now = now

    async def fetch(self, request, follow):
        data, at = b"HAZELin a burrow", self._now()
        hop = Hop(url=request.url, status=200, headers=(("content-type", "application/x-hazel"),), address="")
        body = Body(size=len(data), sha256=sha256(data).hexdigest(), data=data)
        return Capture(url=request.url, started_at=at, ended_at=at, outcome=Outcome.OK, reason="",
                       hops=(hop,), body=body, wire_bytes=len(data))

    async def close(self):
        pass


class SizeTagger:
    def tags(self, page):
        yield "size=large" if len(page.body) > 50 else "size=small"


class PantryHarvester:
    kinds = frozenset({"pantry"})

    async def harvest(self, harvest, client):
        for shelf in (1, 2):
            capture = await client.ask(Request(url=f"{harvest.url}?shelf={shelf}"))
            text = client.body(capture, 100).decode()
            yield HarvestStep(state=b"%d" % shelf, findings=[Quads([quad(f"{harvest.url}#{shelf}", text)])])
        yield HarvestStep(state=b"end", end=HarvestEnd(outcome=Outcome.OK, reason="2 shelves", complete=True))


class DiarySegments(SegmentWriter):
    def sync(self):
        committed = super().sync()
        with open(os.environ["DIARY"], "a") as diary:
            diary.write(f"{self.path.name} {committed}\\n")
        return committed


class NameSink:
    def __init__(self, target, around):
        self._file = Path(target).open("a")

    def deliver(self, edition, nquads, beat):
        self._file.write(f"{edition.document} {len(b''.join(nquads).splitlines())}\\n")

    def sync(self):
        self._file.flush()

    def close(self):
        self._file.close()


FEATURES = [
    Feature(
        name="squirrel",
        about="what squirrels like",
        module=__name__,
        seeds={"acorns": "stranger:AcornSeeds"},
        fetchers={"burrow": "stranger:BurrowFetcher"},
        filters={"secret": "stranger:SecretFilter"},
        formats={
            "application/x-hazel": {
                "endings": ("hazel",),
                "signatures": (b"HAZEL",),
                "q": 0.3,
                "form": "statements",
                "analyser": "stranger:HazelAnalyser",
            }
        },
        analysers={"acorn": "stranger:AcornAnalyser"},
        taggers={"size": "stranger:SizeTagger"},
        harvesters={"pantry": "stranger:PantryHarvester"},
        sinks={"diary": "stranger:DiarySegments"},
        graph_sinks={"names": "stranger:NameSink"},
    )
]
"""


@pytest.fixture
def install(tmp_path):
    """`install(tamias)` puts the stranger's package on the path, as `pip install` would leave it."""

    def put(tamias):
        folder = tmp_path / "packages"
        about = folder / "stranger-1.0.dist-info"
        about.mkdir(parents=True)
        (folder / "stranger.py").write_text(dedent(MODULE))
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[tamias.features]\nstranger = stranger:FEATURES\n")
        tamias.env["PYTHONPATH"] = str(folder)

    return put


def acorn(handler):
    body = b'{"is": "an acorn"}'
    handler.send_response(200)
    handler.send_header("Content-Type", "application/vnd.acorn+json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def oak(site):
    """A site with something for each part."""
    site.pages |= {
        "/": b"<p><a href=/nut>nut</a> <a href=/secret/hole>hole</a> <a href=/open>open</a>"
        b"<a href=/shell>shell</a> <a href=/tree>tree</a></p>",
        "/tree": b"<> <http://example.org/to> <burrow://deep/nut> .",
        "/nut": acorn,
        "/open": b"<title>open</title>",
        "/shell": b"HAZELin a shell",
        "/secret/hole": b"<title>secret</title>",
        "/pantry?shelf=1": b"beech nuts",
        "/pantry?shelf=2": b"hazel nuts",
    }
    return site


def objects(tamias):
    """What `http://example.org/says` says, by subject."""
    done = tamias.run("export")
    assert done.returncode == 0, done.stderr
    quads = parse(done.stdout.encode(), format=RdfFormat.N_QUADS)
    said = [quad for quad in quads if quad.predicate.value == "http://example.org/says"]
    return {quad.subject.value: quad.object.value for quad in said}


def test_a_part_of_every_kind_is_asked(tamias, oak, install, tmp_path):
    install(tamias)
    (tmp_path / "seeds.acorns").write_text(f"acorn {oak.url('/')}\n")
    diary, names = tmp_path / "diary", tmp_path / "names"
    tamias.env |= {
        "DIARY": str(diary),
        "TAMIAS_SINKS__SEGMENTS": "diary",
        "TAMIAS_TAGS__CONTENT": "size",
        "TAMIAS_FILTERS__SCHEMES": "http,https,burrow",
    }
    done = tamias.crawl(
        *(f"acorns:{tmp_path / 'seeds.acorns'}", f"pantry:{oak.url('/pantry')}"),
        *("--no-robots", f"--sink=names:{names}", "--depth=2"),
    )
    assert done.returncode == 0, done.stderr
    asked = {path for path, _ in oak.log}
    assert {"/", "/nut", "/open", "/shell", "/pantry?shelf=1", "/pantry?shelf=2"} <= asked
    assert "/secret/hole" not in asked
    assert objects(tamias) == {
        oak.url("/nut"): '{"is": "an acorn"}',
        oak.url("/shell"): "in a shell",
        "burrow://deep/nut": "in a burrow",
        oak.url("/pantry#1"): "beech nuts",
        oak.url("/pantry#2"): "hazel nuts",
    }
    committed = dict(line.split() for line in diary.read_text().splitlines())
    sizes = {name: str((tamias.data / "rdf" / name).stat().st_size) for name in committed}
    assert committed == sizes
    assert {f"{oak.url('/nut')} 1", f"{oak.url('/pantry#pantry')} 2"} <= set(names.read_text().splitlines())
    assert "size=small" in tamias.run("tag", oak.url("/open"), "--json").stdout


def test_a_sink_that_fails_ends_the_crawl_and_is_named(tamias, oak, install, tmp_path):
    install(tamias)
    (tmp_path / "names").mkdir()  # it writes to a file
    done = tamias.crawl(oak.url("/"), f"--sink=names:{tmp_path / 'names'}", "--depth=0", timeout=120)
    assert done.returncode != 0, done.stderr
    assert f"the sink names:{tmp_path / 'names'} failed: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_writer_of_segments_that_is_not_installed_is_a_bad_configuration(tamias, oak):
    tamias.env["TAMIAS_SINKS__SEGMENTS"] = "diary"
    done = tamias.crawl(oak.url("/"))
    assert (done.returncode, done.stdout) == (4, "")
    assert not unsaid(done.stderr, "diary")
    assert oak.log == []


def listed(tamias):
    return {each["name"]: each for each in json.loads(tamias.run("plugins", "--json").stdout)}


def test_features_are_listed_with_their_lines_and_can_be_switched_off(tamias, install):
    install(tamias)
    found = listed(tamias)
    assert next(iter(found)) == "core"
    assert (found["squirrel"]["on"], found["squirrel"]["distribution"]) == (True, "stranger")
    assert found["squirrel"]["lines"] == len(MODULE.splitlines())
    assert found["squirrel"]["parts"]["filters"] == ["secret"]
    tamias.env["TAMIAS_WITHOUT"] = "squirrel"
    assert listed(tamias)["squirrel"]["on"] is False
    done = tamias.run("crawl", "pantry:http://a.test/")
    assert "Unknown source type 'pantry'" in done.stderr


def test_two_features_that_add_the_same_are_named(tamias, install, tmp_path):
    install(tamias)
    module = tmp_path / "packages" / "stranger.py"
    module.write_text(module.read_text().replace('filters={"secret"', 'filters={"scope"'))
    done = tamias.run("crawl", "http://a.test/")
    assert done.returncode == 4
    assert not unsaid(done.stderr, "scope")
