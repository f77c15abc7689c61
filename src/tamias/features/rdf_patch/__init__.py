"""RDF Patch: changes of RDF documents as transactions that stores apply."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="rdf_patch",
    about="writes changes of RDF documents as RDF Patch",
    module=__name__,
    requires=("diffs", "service", "archive"),
    schema="schema.sql",
    comparisons={"rdf_patch": f"{__name__}.endpoints:rdf_patch"},
    endpoints={"rdf_patch": f"{__name__}.endpoints:ENDPOINTS"},
)
