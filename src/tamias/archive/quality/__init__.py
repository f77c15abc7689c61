"""How good descriptions and deliveries are: Portal Watch's metrics and the European MQA points.

Pure functions of what was told (`told`) and what was got (`got`); `rows` joins them with the database.
"""

from tamias.archive.quality.metrics import METRICS, Metric
from tamias.archive.quality.mqa import Rating, points, rating
from tamias.archive.quality.portal_watch import dataset_metrics
from tamias.archive.quality.rows import (
    Measure,
    measure_portals,
    measure_resources,
    note_told,
    read_measures,
    record_id,
)
from tamias.archive.quality.told import ClaimedDescription, Got, ToldForm, told_of

__all__ = [
    "METRICS",
    "ClaimedDescription",
    "Got",
    "Measure",
    "Metric",
    "Rating",
    "ToldForm",
    "dataset_metrics",
    "measure_portals",
    "measure_resources",
    "note_told",
    "points",
    "rating",
    "read_measures",
    "record_id",
    "told_of",
]
