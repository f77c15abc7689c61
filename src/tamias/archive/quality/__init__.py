"""Quality of descriptions and deliveries: Portal Watch's metrics and the European MQA points.

Pure functions of what was claimed (`claimed`) and what was got (`got`); `rows` joins them with the database.
"""

from tamias.archive.quality.claims import ClaimedDescription, ClaimedForm, Got, claims_of
from tamias.archive.quality.metrics import METRICS, Metric
from tamias.archive.quality.mqa import Rating, points, rating
from tamias.archive.quality.portal_watch import dataset_metrics
from tamias.archive.quality.rows import (
    Measure,
    measure_portals,
    measure_resources,
    note_claims,
    read_measures,
    record_id,
)

__all__ = [
    "METRICS",
    "ClaimedDescription",
    "ClaimedForm",
    "Got",
    "Measure",
    "Metric",
    "Rating",
    "claims_of",
    "dataset_metrics",
    "measure_portals",
    "measure_resources",
    "note_claims",
    "points",
    "rating",
    "read_measures",
    "record_id",
]
