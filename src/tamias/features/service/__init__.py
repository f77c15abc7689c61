"""The service: REST, SPARQL, events and metrics over HTTP, beside the scheduler and the workers."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="service",
    about="the archive over HTTP: REST, SPARQL, events and metrics",
    module=__name__,
    requires=("catalogue", "dcat", "stats", "tokens", "archive"),
    tables=("webhook",),
    verbs={
        "serve": Verb(
            "run the service: scheduler, workers, REST API, Memento, metrics", f"{__name__}.verb:command"
        )
    },
    queries={"events": f"{__name__}.events.log:events_after"},
    endpoints={
        **{name: f"{__name__}.api.{name}:ENDPOINTS" for name in ("datasets", "files", "forget", "graphs")},
        "crawls": f"{__name__}.api.crawls:ENDPOINTS",
        **{name: f"{__name__}.api.{name}:ENDPOINTS" for name in ("frontier", "portals")},
        **{name: f"{__name__}.api.{name}:ENDPOINTS" for name in ("resources", "tags")},
        "events": f"{__name__}.events.stream:ENDPOINTS",
        "webhooks": f"{__name__}.events.webhooks:ENDPOINTS",
        "health": f"{__name__}.http.health:ENDPOINTS",
        "sparql": f"{__name__}.sparql.routes:ENDPOINTS",
    },
)
