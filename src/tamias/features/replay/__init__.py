"""Replay: archived pages at a time that a client chooses, by Memento and CDX, also from WARC files."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="replay",
    about="Memento and CDX over the archive and WARC files",
    module=__name__,
    requires=("service", "warc"),
    endpoints={name: f"{__name__}.{name}:ENDPOINTS" for name in ("memento", "cdx")},
)
