"""Signatures: requests carry HTTP message signatures (RFC 9421), so that sites can tell who visits."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="signatures",
    about="signs requests with the operator's key (Web Bot Auth)",
    module=__name__,
    requires=("service",),
    settings="tamias.features.signatures.settings:SignaturesSettings",
    verbs={
        "key": Verb(
            "make the key that signs requests, and show its directory",
            "tamias.features.signatures.verb:command",
        )
    },
    signers={"signatures": "tamias.features.signatures.settings:make_signer"},
    endpoints={"signatures": "tamias.features.signatures.endpoints:ENDPOINTS"},
)
