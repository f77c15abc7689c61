"""A site of documents like no other that name each other, so that the whole is found from the first."""

from functools import cache
from random import Random

from benchmarks.webs.sites import NOTHING, LoopbackSites, SiteAnswer
from benchmarks.webs.wire import WireRequest

TEXT_BYTES = 600


class PageTree:
    """The same number of pages on every host, in a tree of two branches each; robots.txt if there is one."""

    def __init__(
        self, count: int, *, robots: str | None = None, pause: float = 0.0, folder: str = ""
    ) -> None:
        self.count = count
        self.pause = pause
        self._robots = robots
        self._folder = folder

    def __call__(self, asked: WireRequest) -> SiteAnswer:
        """What is served."""
        if asked.path == "/robots.txt" and self._robots is not None:
            return SiteAnswer(body=self._robots.encode(), headers=(("Content-Type", "text/plain"),))
        number = asked.path.removeprefix(f"{self._folder}/")
        if not number.isdigit() or not 1 <= int(number) <= self.count:
            return NOTHING
        return SiteAnswer(body=_body(asked.host, self._folder, int(number), self.count), pause=self.pause)

    def first(self, web: LoopbackSites, port: int | None = None) -> list[str]:
        """Where a crawl begins."""
        return [web.url(host, f"{self._folder}/1", port) for host in web.hosts]

    def truth(self, web: LoopbackSites, port: int | None = None) -> dict[str, bytes]:
        """Every address, and what it says."""
        return {
            web.url(host, f"{self._folder}/{number}", port): _body(host, self._folder, number, self.count)
            for host in web.hosts
            for number in range(1, self.count + 1)
        }


@cache
def _body(host: str, folder: str, number: int, count: int) -> bytes:
    text = Random(f"{host}{folder}/{number}").randbytes(TEXT_BYTES // 2).hex()
    following = [f"<#next> <{folder}/{each}>" for each in (2 * number, 2 * number + 1) if each <= count]
    return (" ; ".join([f'<> <#says> "{text}"', *following]) + " .\n").encode()
