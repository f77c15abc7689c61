"""What a crawl harvested, by the order in which it asked for pages. Pure."""

from collections.abc import Sequence

import msgspec

from benchmarks.strategy.web import TopicWeb

SHARES = (0.2, 0.5, 0.8)
WIDTH = 50


class StrategyHarvest(msgspec.Struct, frozen=True, kw_only=True):
    """How one crawl did for one kind of pages."""

    crawl: str
    kind: str
    relevant: int
    """Pages of the kind on the web."""
    fetches: int
    """Pages asked for in all."""
    found: int
    """Of these, of the kind."""
    until: dict[str, int | None]
    """Fetches until so large a part of the pages of the kind was had, such as `0.8`."""
    hosts_until: int | None
    """Fetches until every host of the kind had been asked."""
    others_before: int | None
    """Hosts of no use that had been asked by then."""
    curve: tuple[float, ...]
    """The part that was had after each of fifty equal steps of the longest crawl."""

    @property
    def rate(self) -> float:
        """The part of the fetches that brought what was looked for, until 80 % of it was had."""
        last = self.until["0.8"]
        return 0.0 if last is None else 0.8 * self.relevant / last


def harvest(
    web: TopicWeb, crawl: str, kind: str, visits: Sequence[tuple[int, int]], longest: int
) -> StrategyHarvest:
    """Counts a crawl; `longest` is the length of the longest one, so that curves can be compared."""
    relevant = web.relevant(kind)
    found = 0
    until: dict[str, int | None] = dict.fromkeys(map(str, SHARES))
    seen: set[tuple[int, int]] = set()
    points: list[int] = []
    for fetches, visit in enumerate(visits, 1):
        if visit not in seen and web.is_relevant(*visit, kind):
            found += 1
            for share in SHARES:
                if found == round(share * relevant):
                    until[str(share)] = fetches
        seen.add(visit)
        points.append(found)
    hosts_until, others = _hosts(web, kind, visits)
    return StrategyHarvest(
        crawl=crawl,
        kind=kind,
        relevant=relevant,
        fetches=len(visits),
        found=found,
        until=until,
        hosts_until=hosts_until,
        others_before=others,
        curve=_curve(points, relevant, longest),
    )


def _hosts(web: TopicWeb, kind: str, visits: Sequence[tuple[int, int]]) -> tuple[int | None, int | None]:
    left = {host for host in range(web.hosts) if web.kind(host) == kind}
    others: set[int] = set()
    for fetches, (host, _) in enumerate(visits, 1):
        if web.kind(host) == kind:
            left.discard(host)
        else:
            others.add(host)
        if not left:
            return fetches, len(others)
    return None, None


def _curve(points: Sequence[int], relevant: int, longest: int) -> tuple[float, ...]:
    steps = (round(longest * turn / WIDTH) for turn in range(1, WIDTH + 1))
    return tuple((points[min(step, len(points)) - 1] if points and step else 0) / relevant for step in steps)


def plot(harvests: Sequence[StrategyHarvest]) -> list[str]:
    """The curves as lines of text: each sign is a fiftieth of the longest crawl, from none to all found."""
    signs = " ▁▂▃▄▅▆▇█"
    return [
        f"{each.crawl:<14}|{''.join(signs[round(part * (len(signs) - 1))] for part in each.curve)}|"
        for each in harvests
    ]
