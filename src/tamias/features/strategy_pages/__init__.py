"""Strategies on a page: which there are, and how much of what they chose to visit was worth it."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="strategy_pages",
    about="shows the harvest rate of strategies over time",
    module=__name__,
    requires=("strategy", "service", "pages"),
    pages={"strategies": f"{__name__}.pages:strategies"},
)
