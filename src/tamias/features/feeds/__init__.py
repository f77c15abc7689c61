"""Feeds: what is new in the archive, as JSON, Atom, JSON Feed and an event stream (LDES)."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="feeds",
    about="lists and feeds of new versions: JSON, Atom, JSON Feed, LDES",
    module=__name__,
    requires=("service", "catalogue", "dcat"),
    endpoints={name: f"{__name__}.{name}:ENDPOINTS" for name in ("changes", "ldes")},
)
