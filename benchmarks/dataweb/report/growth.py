"""The part of the report about the scale run. Pure."""

from collections.abc import Iterator

from benchmarks.dataweb.report.blocks import Block, Figure, TableBlock, TextBlock, Title
from benchmarks.dataweb.scale import Leg, Scale
from tamias.cli.console.plots import Curve, plot

COLUMNS = (
    "crawl", "fetched", "URLs known", "s", "pages/s", "pages/s, last/second tenth", "CPU ms/page",
    "CPU ms/page, last/second tenth", "peak MB", "memory, last/second tenth", "database bytes/URL",
)  # fmt: skip


def scaled(scale: Scale) -> Iterator[Block]:
    """The experiment of scale."""
    yield Title("Scale")
    yield TextBlock(f"{scale.pages} pages on {scale.hosts} hosts, made while they are served, and one seed.")
    legs = [("from one seed", scale.first)]
    if scale.second is not None:
        legs.append((f"after {scale.put} more URLs", scale.second))
        yield TextBlock(
            f"Then {scale.put} more URLs were put into the same frontier, in {scale.put_seconds:.0f} s, "
            "and the crawl went on."
        )
    yield TableBlock([COLUMNS, *(row(name, leg) for name, leg in legs)])
    yield from (TextBlock(f"**{leg.fault}.**") for _, leg in legs if leg.fault)
    yield from (TextBlock(ended(name, leg)) for name, leg in legs)
    paces = [
        Curve(name, [(each.seconds, each.pages_per_second) for each in leg.tenths]) for name, leg in legs
    ]
    yield Figure("scale-pace", "Pages a second, by tenth of the pages", plot(paces, "seconds", "pages/s"))
    yield Figure("scale-cpu", "Processor time for a page, by tenth", plot(costs(legs), "seconds", "ms/page"))
    memory = [Curve(name, points) for name, points in memory_by_name(scale.first)]
    yield Figure("scale-memory", "Memory over time, from one seed", plot(memory, "seconds", "MB"))


def row(name: str, leg: Leg) -> tuple[str, ...]:
    """One crawl's line."""
    measured, fetched = leg.measured, max(1, leg.fetched)
    return (
        name,
        str(leg.fetched),
        str(leg.known),
        f"{measured.wall_seconds:.0f}",
        f"{leg.fetched / max(1e-9, measured.wall_seconds):.0f}",
        f"{leg.flatness:.2f}",
        f"{1000 * measured.cpu_seconds / fetched:.2f}",
        f"{leg.growth:.2f}",
        f"{measured.peak_bytes / 1e6:.0f}",
        f"{memory_growth(leg):.2f}",
        f"{leg.database_bytes / max(1, leg.known):.0f}",
    )


def ended(name: str, leg: Leg) -> str:
    """How it ended, which says how the last tenth is to be read."""
    if leg.complete:
        return f"The crawl {name} came to its end: its last pages came from fewer and fewer hosts."
    return f"The crawl {name} was ended by `--max-time` while there was work on all hosts."


def costs(legs: list[tuple[str, Leg]]) -> list[Curve]:
    """Processor time for a page: the whole, and the database's part."""
    whole = [Curve(name, [(each.seconds, each.cpu_ms) for each in leg.tenths]) for name, leg in legs]
    part = [
        Curve("its database", [(each.seconds, each.database_ms) for each in leg.tenths]) for _, leg in legs
    ]
    return [line for pair in zip(whole, part, strict=True) for line in pair]


def memory_growth(leg: Leg) -> float:
    """The most memory in the last tenth over the most in the second."""
    if not leg.tenths:
        return 0.0
    spans = [(leg.tenths[0].seconds, leg.tenths[1].seconds), (leg.tenths[-2].seconds, leg.tenths[-1].seconds)]
    second, last = (
        max((each.total for each in leg.measured.glances if since <= each.seconds <= until), default=0)
        for since, until in spans
    )
    return last / second if second else 0.0


def memory_by_name(leg: Leg) -> list[tuple[str, list[tuple[float, float]]]]:
    """The largest programs of the tree."""
    names = sorted(leg.measured.peak_by_name, key=lambda name: -leg.measured.peak_by_name[name])[:4]
    glances = leg.measured.glances
    return [(name, [(each.seconds, each.by_name.get(name, 0) / 1e6) for each in glances]) for name in names]
