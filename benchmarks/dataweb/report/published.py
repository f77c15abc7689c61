"""What was published of others: table 2 of the Squirrel paper, on other hardware, and so only beside ours."""

import msgspec

HARDWARE = (
    "three machines for the crawler and three for the servers, 16 cores and 256 GB each; robots.txt off. "
    "Resources/s is 44,600 over the published run time."
)
RESOURCES = 44_600


class Published(msgspec.Struct, frozen=True):
    """One row; seconds, gigabytes."""

    name: str
    first_recall: float
    first_seconds: int
    second_recall: float
    second_seconds: int
    second_cpu: float
    second_memory: float

    @property
    def resources_per_second(self) -> float | None:
        """None where the crawl ended too early to tell."""
        return RESOURCES / self.second_seconds if self.second_recall > 0.99 else None


ROWS = (
    Published("LDSpider T1", 0.31, 1798, 1.00, 2031, 320.0, 1.2),
    Published("LDSpider T8", 0.30, 1792, 1.00, 2295, 265.9, 2.8),
    Published("LDSpider T16", 0.31, 1858, 1.00, 1945, 345.4, 1.6),
    Published("LDSpider T32", 0.31, 1847, 1.00, 2635, 11.6, 2.6),
    Published("LDSpider T32, load-balanced", 0.03, 66, 0.54, 765, 182.1, 7.5),
    Published("Squirrel W1", 0.98, 6663, 1.00, 11821, 991.3, 3.9),
    Published("Squirrel W3", 0.98, 2686, 1.00, 4100, 681.4, 8.6),
    Published("Squirrel W9", 0.98, 1412, 1.00, 1591, 464.8, 18.1),
    Published("Squirrel W18", 0.97, 1551, 1.00, 1091, 279.8, 22.1),
)
