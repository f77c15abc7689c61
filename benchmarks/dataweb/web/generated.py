"""A web of any size that is made while it is served: every page is worked out from its number. Pure."""

import re

import msgspec

from benchmarks.dataweb.web.answers import Answer, response
from benchmarks.dataweb.web.context import Ports, triple
from benchmarks.dataweb.web.plan import FIRST_ADDRESS
from tamias.model.errors import UsageError

_PAGE = re.compile(r"/page/(\d{1,12})")
_MIX = 0x9E3779B97F4A7C15
_FIRST = int(FIRST_ADDRESS)
PREDICATE = "http://www.w3.org/2000/01/rdf-schema#seeAlso"
MOST_HOSTS = 60_000


class Endless(msgspec.Struct, frozen=True):
    """`pages` documents on `hosts` addresses; each links to two children of its own and to some others."""

    pages: int
    hosts: int
    ports: Ports
    others: int = 6

    def __post_init__(self) -> None:
        if not 1 <= self.hosts <= min(self.pages, MOST_HOSTS):
            raise UsageError(f"--hosts {self.hosts}: choose 1 to {MOST_HOSTS}, and no more than the pages")

    @property
    def seeds(self) -> list[str]:
        return [self.url(0)]

    def url(self, page: int) -> str:
        """Where a page is."""
        number = _FIRST + page % self.hosts
        address = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
        return f"http://{address}:{self.ports.http}/page/{page}"

    def targets(self, page: int) -> list[int]:
        """Its two children, and others that are as good as random."""
        children = [child for child in (2 * page + 1, 2 * page + 2) if child < self.pages]
        return children + [((page * 31 + turn + 1) * _MIX >> 17) % self.pages for turn in range(self.others)]

    def site_at(self, address: str) -> "EndlessSite | None":
        """The pages at an address; None beyond the last host."""
        parts = [int(part) for part in address.split(".")]
        host = (parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | parts[3]) - _FIRST
        return EndlessSite(self, host) if 0 <= host < self.hosts else None


class EndlessSite:
    """One host of it."""

    def __init__(self, web: Endless, host: int) -> None:
        self._web, self._host = web, host

    def get(self, path: str) -> Answer | None:
        """The page, made now."""
        found = _PAGE.fullmatch(path)
        page = int(found[1]) if found else -1
        if not (0 <= page < self._web.pages and page % self._web.hosts == self._host):
            return None
        url = self._web.url(page)
        lines = [triple(url, PREDICATE, self._web.url(target)) for target in self._web.targets(page)]
        return response(200, b"".join(lines), "text/turtle")
