"""Continuous crawls: every URL is visited again, as often as it changes and the budget allows."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="continuous",
    about="plans the visits of crawls that go on",
    module=__name__,
    continuous={
        "schedule": f"{__name__}.schedule:ContinuousSchedule",
        "hints": f"{__name__}.schedule:CrawlHints",
        "supervision": f"{__name__}.schedule:Continuing",
    },
)
