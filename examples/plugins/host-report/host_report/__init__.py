"""Watched resources and versions by host."""

from tamias.plugins import Feature, Verb

FEATURES = [
    Feature(
        name="host-report",
        about="watched resources and versions by host",
        module=__name__,
        verbs={"host-report": Verb("show how much is watched on each host", "host_report.verb:command")},
        pages={"host-report": "host_report.page:PAGE"},
    )
]
