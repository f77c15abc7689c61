"""The archive for other catalogues: datasets as RDF, DCAT, VoID, OAI-PMH, data.json, sitemap, linksets."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="published",
    about="publishes the catalogue: RDF, DCAT, VoID, OAI-PMH, data.json, sitemap, linksets",
    module=__name__,
    requires=("service", "dcat", "stats"),
    endpoints={name: f"{__name__}.{name}:ENDPOINTS" for name in ("catalogue", "oai", "sitemap")},
    routes={"published": "tamias.features.published.catalogue:add_routes"},
)
