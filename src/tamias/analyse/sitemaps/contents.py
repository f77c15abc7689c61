"""Gathers what a sitemap says into batches, counts it against the limits, and tells what is wrong with it."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from tamias.analyse.chunks import RefusedError
from tamias.analyse.sitemaps.elements import Element
from tamias.model.errors import UrlError
from tamias.model.finding import Finding, Links, Problem
from tamias.model.kind import SITEMAP
from tamias.model.site import Hint, Hints, SemanticDataset, SemanticDatasets, sitemap_folder
from tamias.model.url import fetch_url, resolve
from tamias.settings import AnalyseSettings

BATCH = 1000
_SHOWN = 100

T = TypeVar("T")


class Gathered:
    """The content of a sitemap."""

    def __init__(self, url: str, limits: AnalyseSettings) -> None:
        self.url = url
        self._limits = limits
        self._folder = _folder(url)
        self._most_problems = limits.max_errors
        self._left = limits.sitemap_urls
        self._pages: list[str] = []
        self._sitemaps: list[str] = []
        self._hints: list[Hint] = []
        self._beyond: list[Hint] = []
        self._datasets: list[SemanticDataset] = []
        self._problems: list[Problem] = []
        self._problem_count = 0
        self._odd: dict[str, tuple[str, int, int]] = {}

    def address(self, reference: str, line: int, base: str | None = None) -> str | None:
        """The `fetch_url` of a reference; of one that is none, or too long, a problem is told."""
        if len(reference) > self._limits.sitemap_loc:
            self.problem(
                f"address of more than {self._limits.sitemap_loc} characters"
                " (limit analyse.sitemap_loc), left out",
                line,
            )
            return None
        try:
            if not reference:
                raise UrlError("an address is empty")
            return resolve(reference, base or self.url)
        except UrlError as error:
            self.problem(str(error), line)
            return None

    def count(self) -> None:
        """Counts an address. Raises `RefusedError` at the one too many."""
        if not self._left:
            limit = self._limits.sitemap_urls
            raise RefusedError(
                f"more than {limit} addresses (limit analyse.sitemap_urls): the rest is not read"
            )
        self._left -= 1

    def page(self, url: str) -> None:
        self.count()
        self._pages.append(url)

    def sitemap(self, url: str) -> None:
        self.count()
        self._sitemaps.append(url)

    def hint(self, hint: Hint) -> None:
        """Takes a hint, if it says anything."""
        if (hint.lastmod_ms, hint.changefreq, hint.priority, hint.sha256) != (None, None, None, None):
            (self._hints if hint.url.startswith(self._folder) else self._beyond).append(hint)

    def dataset(self, dataset: SemanticDataset) -> None:
        self.count()
        self._datasets.append(dataset)

    def problem(self, what: str, line: int | None = None) -> None:
        self._problem_count += 1
        if self._problem_count <= self._most_problems:
            self._problems.append(Problem(what, line))

    def sensible(self, field: str, read: Callable[[str], T | None], element: Element | None) -> T | None:
        """The value that is read from the text of an element; if there is none, that is noted.

        Files have the same fault throughout, so each field is told of once.
        """
        value = read(element.text) if element else None
        if element and value is None:
            first, at, count = self._odd.get(field, (element.text[:_SHOWN], element.line, 0))
            self._odd[field] = (first, at, count + 1)
        return value

    def batches(self) -> Iterator[Finding]:
        """Yield what there is, once it is enough for a batch."""
        hints = len(self._hints) + len(self._beyond)
        if max(len(self._pages) + len(self._sitemaps), hints) >= BATCH or self._datasets:
            yield from self._take()

    def rest(self) -> Iterator[Finding]:
        """Yield what is left at the end."""
        yield from self._take()
        for field, (text, line, count) in self._odd.items():
            more = f", and {count - 1} more like it" if count > 1 else ""
            yield Problem(f"{field} {text!r} is invalid and is left out{more}", line)
        if self._problem_count > self._most_problems:
            yield Problem(
                f"{self._problem_count - self._most_problems} more errors (limit analyse.max_errors)"
            )

    def _take(self) -> Iterator[Finding]:
        if self._pages:
            yield Links(self._pages, self.url)
        if self._sitemaps:
            yield Links(self._sitemaps, self.url, kind=SITEMAP)
        if self._hints or self._beyond:
            yield Hints(self._hints, self._beyond)
        if self._datasets:
            yield SemanticDatasets(self._datasets)
        yield from self._problems
        self._pages, self._sitemaps, self._hints, self._beyond = [], [], [], []
        self._datasets, self._problems = [], []


def _folder(url: str) -> str:
    try:
        return sitemap_folder(fetch_url(url))
    except UrlError:
        return sitemap_folder(url)
