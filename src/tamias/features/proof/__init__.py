"""Proof: timestamps (RFC 3161) over the versions of a day, proofs that anybody can verify, signatures."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="proof",
    about="proves by timestamps when versions existed, and signs WACZ files",
    module=__name__,
    requires=("exports", "warc_exports"),
    tables=("proof_tree",),
    schema="schema.sql",
    settings=f"{__name__}.settings:ProofSettings",
    verbs={"prove": Verb("write a proof of when a version existed", f"{__name__}.verb:command")},
    package_signers={"wacz": f"{__name__}.wacz_auth:make_signer"},
    chores={"proof": f"{__name__}.stamps:stamp_days"},
)
