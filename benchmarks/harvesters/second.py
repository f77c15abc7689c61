"""What a second harvest of an unchanged portal costs, beside the first: requests and processor time."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec

from benchmarks.harvesters.portal.server import ckan_answer, serve_portal
from benchmarks.measuring.targets import BenchmarkTarget, report_targets

MOST_RATIO = 0.1
_SECONDS = 1200
_OAI_PAGE = 100
_WAIT = 30
"""Seconds until a portal is due again."""
_NOW = b"2024-06-01T00:00:00Z"

Out = Callable[[str], object]


class PortalSetup(NamedTuple):
    """A kind of portal: what it answers, with which media type, and how it is named to the command."""

    answer: Callable[[str, int], bytes]
    media_type: str
    path: str


class HarvestCost(msgspec.Struct, kw_only=True):
    """Of one harvest, by the command and its workers; the database is not counted."""

    requests: int
    cpu_seconds: float


def run(datasets: int = 10_000, kinds: tuple[str, ...] = (), out: Out = print) -> dict[str, Any]:
    """Measures each kind; `ok` is false when a second harvest costs more than a tenth of the first."""
    report: dict[str, Any] = {}
    targets: list[BenchmarkTarget] = []
    for kind in kinds or tuple(KINDS):
        first, second, idle = _measure(kind, datasets)
        requests = second.requests / first.requests
        cpu = max(0, second.cpu_seconds - idle.cpu_seconds) / (first.cpu_seconds - idle.cpu_seconds)
        out(
            f"{kind}, {datasets:,} datasets: first {first.requests} requests, {first.cpu_seconds:.1f} s of "
            f"processor time; second {second.requests} requests, {second.cpu_seconds:.1f} s; a command with "
            f"nothing to do: {idle.cpu_seconds:.1f} s"
        )
        limit = max(MOST_RATIO, 1 / first.requests)
        name = f"{kind}: second harvest at most {MOST_RATIO:g} x"
        targets += [
            BenchmarkTarget(f"{name} (or 1) of the requests", f"{requests:.3f} x", requests <= limit),
            BenchmarkTarget(f"{name} of the processor time beyond that", f"{cpu:.3f} x", cpu <= MOST_RATIO),
        ]
        report[kind] = msgspec.to_builtins({"first": first, "second": second, "idle": idle})
    return report | report_targets(targets, out)


def _measure(kind: str, datasets: int) -> tuple[HarvestCost, HarvestCost, HarvestCost]:
    setup, log = KINDS[kind], list[str]()
    with (
        TemporaryDirectory(prefix="tamias-bench-") as folder,
        serve_portal(lambda address: setup.answer(address, datasets), setup.media_type, log) as root,
    ):
        data = Path(folder) / "data"
        _tamias(data, "add", f"{kind}:{root}{setup.path}")
        first = _visit(data, log)
        time.sleep(_WAIT)
        second = _visit(data, log)
        if not (first.requests and second.requests):
            raise RuntimeError(
                f"{kind}: {first.requests} and {second.requests} requests: a harvest is missing"
            )
        return first, second, _visit(data, log)


def _visit(data: Path, log: list[str]) -> HarvestCost:
    log.clear()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _tamias(data, "crawl", "--recrawl", "--allow-private", "--delay", "0", "--workers", "1")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return HarvestCost(requests=sum("robots.txt" not in path for path in log), cpu_seconds=cpu)


def _tamias(data: Path, verb: str, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "tamias", verb, "--data", str(data), *words],
        check=False,
        capture_output=True,
        timeout=_SECONDS,
        env={**os.environ, "TAMIAS_SEEDS__PROBE": "false", "TAMIAS_SCHEDULE__HARVESTS": str(_WAIT - 5)},
    )


def _ckan(address: str, datasets: int) -> bytes:
    """Without addresses of files, which would be visited too."""
    return ckan_answer(address, datasets).replace(b"https://files.example.org/", b"urn:files:")


def _oai(address: str, datasets: int) -> bytes:
    query = {name: values[-1] for name, values in parse_qs(urlsplit(address).query).items()}
    verb = query.get("verb", "")
    if verb == "Identify":
        return _oai_xml(_IDENTIFY)
    if verb != "ListRecords":
        return _oai_xml(b"<ListMetadataFormats/>")
    if "from" in query:
        return _oai_xml(b'<error code="noRecordsMatch"/>')
    start = int(query.get("resumptionToken", "0"))
    records = b"".join(_OAI_RECORD % {b"n": number} for number in range(datasets)[start : start + _OAI_PAGE])
    following = start + _OAI_PAGE
    token = b"%d" % following if following < datasets else b""
    tail = b"<resumptionToken>%b</resumptionToken>" % token
    return _oai_xml(b"<ListRecords>%b%b</ListRecords>" % (records, tail))


def _oai_xml(inner: bytes) -> bytes:
    head = b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>%b</responseDate>' % _NOW
    return head + inner + b"</OAI-PMH>"


_IDENTIFY = b"""<Identify><repositoryName>Town</repositoryName><deletedRecord>persistent</deletedRecord>
<granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>"""
_OAI_RECORD = b"""<record><header><identifier>oai:town:%(n)d</identifier>
<datestamp>2024-01-01T00:00:00Z</datestamp></header><metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"
xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Trees of district %(n)d</dc:title>
<dc:description>The register of all trees in district %(n)d, brought up to date once a year.</dc:description>
<dc:creator>Survey office</dc:creator><dc:publisher>Parks department</dc:publisher>
<dc:subject>tree</dc:subject><dc:date>2024-01-01</dc:date><dc:type>Dataset</dc:type>
<dc:identifier>urn:town:%(n)d</dc:identifier>
</oai_dc:dc></metadata></record>"""


def _dcat(_address: str, datasets: int) -> bytes:
    return _DCAT_HEAD + b"".join(_DCAT_DATASET % {b"n": number} for number in range(datasets))


_DCAT_HEAD = b"@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix dct: <http://purl.org/dc/terms/> .\n"
_DCAT_DATASET = b"""<urn:town:%(n)d> a dcat:Dataset ; dct:title "Trees of district %(n)d"@en ;
  dct:description "The register of all trees in district %(n)d, brought up to date once a year."@en ;
  dcat:keyword "tree"@en, "park"@en ; dct:modified "2024-01-01" ;
  dcat:distribution <urn:town:%(n)d:csv> .
<urn:town:%(n)d:csv> a dcat:Distribution ; dcat:downloadURL <urn:files:%(n)d.csv> .
"""

KINDS = {
    "ckan": PortalSetup(_ckan, "application/json", ""),
    "oai-pmh": PortalSetup(_oai, "text/xml", "oai"),
    "dcat": PortalSetup(_dcat, "text/turtle", "catalog.ttl"),
}
