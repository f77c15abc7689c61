"""The parts of a plug-in: how they are described, their contracts, and the values they work with.

The module of a `FEATURE` is imported with every command: it takes `Feature` and `Verb` from `tamias.plugins`,
which loads nothing else.
"""

from tamias.cli.console.options import CommonOptions, common
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.store.visit import CommitBatch, CommitHook, Visit
from tamias.crawl.visit.stages import PlacedStage, StageContext
from tamias.database.connect import Cursor, Database, Session
from tamias.model.capture import Body, Capture, Hop, Outcome, Request, Stop
from tamias.model.dataset import Dataset, Distribution
from tamias.model.document import Document, Page
from tamias.model.finding import Finding, Harvest, HarvestEnd, HarvestStep, Links, Problem, Quads
from tamias.model.item import Seed
from tamias.plugins import Feature, Verb
from tamias.protocols import (
    Analyser,
    Fetcher,
    Filter,
    Harvester,
    PoliteClient,
    SeedSource,
    SignRequests,
    Sink,
    Tagger,
)
from tamias.settings import FeatureSettings, Settings

__all__ = [
    "Analyser", "Body", "Capture", "CommitBatch", "CommitContext", "CommitHook", "CommonOptions", "Cursor",
    "Database", "Dataset", "Distribution", "Document", "Feature", "FeatureSettings", "Fetcher", "Filter",
    "Finding", "Harvest", "HarvestEnd", "HarvestStep", "Harvester", "Hop", "Links", "Outcome", "Page",
    "PlacedStage", "PoliteClient", "Problem", "Quads", "Request", "Seed", "SeedSource", "Session", "Settings",
    "SignRequests", "Sink", "StageContext", "Stop", "Tagger", "Verb", "Visit", "common",
]  # fmt: skip
