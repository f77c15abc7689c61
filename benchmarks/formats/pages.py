"""Pages with structured data, through Tamias and through extruct."""

import os
import tarfile
import warnings
from collections import deque
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.formats.corpus import SITE
from benchmarks.formats.step import collected, cpu_seconds, fetched
from tamias.analyse.markup import jsonld, metas, microdata, rdfa
from tamias.analyse.markup.page import MarkupPage
from tamias.crawl.analysing.extractor import Extractor

REAL_PAGES = "real-html-samples.tar.gz"
SYNTAXES = ("json-ld", "microdata", "rdfa", "opengraph")
GENERATED = 20
AT_ONCE = 20
"""Rounds over all pages in one measurement: a page takes about a millisecond."""

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><title>Offer {number}</title>
<meta property="og:title" content="Offer {number}"><meta property="og:type" content="product">
<meta property="og:url" content="{site}offer/{number}">
<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "Product",
"name": "Thing {number}", "offers":
{{"@type": "Offer", "price": "{number}.50", "priceCurrency": "EUR"}}}}</script>
</head><body>
<div itemscope itemtype="https://schema.org/Person"><a itemprop="url" href="/people/{number}">
<span itemprop="name">Seller {number}</span></a></div>
<div vocab="https://schema.org/" typeof="Place"><span property="name">Market {number}</span></div>
{prose}</body></html>
"""


class MarkupFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Pages in a second of processor time."""

    pages: str
    """Where they are from."""
    whole_step: float
    """Links, all syntaxes, stored."""
    four_syntaxes: float
    extruct: float | None = None
    skipped: str | None = None

    @property
    def ratio(self) -> float | None:
        """How many times as fast as extruct, for the four syntaxes."""
        return self.four_syntaxes / self.extruct if self.extruct else None


def measure_pages(extractor: Extractor, folder: Path, rounds: int = AT_ONCE) -> MarkupFigures:
    """The pages of the public suite where it is at hand, otherwise pages of our own."""
    paths = _real_pages(folder / "real") or _made_pages(folder / "made")
    captures = [fetched(path, "text/html") for path in paths]
    pages = [path.read_bytes() for path in paths]
    count = rounds * len(pages)
    step = cpu_seconds(lambda: collected(extractor, captures * rounds))
    four = cpu_seconds(lambda: _four_syntaxes(pages * rounds))
    figures = MarkupFigures(
        pages=f"{len(pages)} {'real' if paths[0].parent.name == 'real' else 'generated'} pages",
        whole_step=count / step,
        four_syntaxes=count / four,
    )
    if find_spec("extruct") is None:
        skipped = "extruct is not installed (pip install extruct)"
        return msgspec.structs.replace(figures, skipped=skipped)
    return msgspec.structs.replace(figures, extruct=len(pages) / _extruct_seconds(pages))


def _four_syntaxes(pages: list[bytes]) -> None:
    """Each of them, even on pages without a sign of it, which a crawl does not ask."""
    for data in pages:
        page = MarkupPage(data, url=SITE, base=SITE, media_type="text/html")
        for extractor in (jsonld, microdata, rdfa, metas):
            deque(extractor.extract(page), maxlen=0)


def _extruct_seconds(pages: list[bytes]) -> float:
    extruct: Any = __import__("extruct")

    def extract() -> None:
        for page in pages:
            extruct.extract(page, base_url=SITE, syntaxes=list(SYNTAXES), errors="ignore")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cpu_seconds(extract)


def _real_pages(folder: Path) -> list[Path]:
    beside = Path(__file__).resolve().parents[3] / "shared" / "suites"
    archive = Path(os.environ.get("TAMIAS_SUITES", beside)) / REAL_PAGES
    if not archive.exists():
        return []
    folder.mkdir()
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.isfile() and member.name.endswith(".html") and (file := tar.extractfile(member)):
                (folder / Path(member.name).name).write_bytes(file.read())
    return sorted(folder.iterdir())


def _made_pages(folder: Path) -> list[Path]:
    folder.mkdir()
    for number in range(GENERATED):
        prose = "".join(
            f'<p class="text"><a href="/{number}/{n}">Part {n}</a> of it.</p>\n' for n in range(300)
        )
        text = _PAGE.format(number=number, site=SITE, prose=prose)
        (folder / f"{number}.html").write_text(text, encoding="utf-8")
    return sorted(folder.iterdir())
