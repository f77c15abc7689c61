"""Strategies: SQL functions of the user score URLs and links, and so say what is visited first."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="strategy",
    about="the order of visits by your own SQL, and URLs inserted with SQL",
    module=__name__,
    tables=("strategy", "rescoring"),
    verbs={"strategy": Verb("choose in SQL what is visited first", "tamias.features.strategy.verb:command")},
    scorers={"strategy": "tamias.features.strategy.strategist:Strategist"},
    upkeep={"strategy": "tamias.features.strategy.upkeep:StrategyUpkeep"},
    crawl_deletions={"strategy": "tamias.features.strategy.versions:delete_strategies"},
    restores={"strategy": "tamias.features.strategy.versions:rebuild_strategies"},
)
