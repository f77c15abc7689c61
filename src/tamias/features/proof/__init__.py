"""Proof: timestamps (RFC 3161) over the versions of a day, and bundles that anybody can verify."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="proof",
    about="proves by timestamps when versions existed",
    module=__name__,
    requires=("exports",),
    tables=("proof_tree",),
    schema="schema.sql",
    settings=f"{__name__}.settings:ProofSettings",
    verbs={"prove": Verb("write a proof of when a version existed", f"{__name__}.verb:command")},
    chores={"proof": f"{__name__}.stamps:stamp_days"},
)
