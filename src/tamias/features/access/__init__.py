"""Access: named tokens made, listed and withdrawn, and the audit log, as commands and over REST."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="access",
    about="tokens of the service, and the log of writing calls",
    module=__name__,
    requires=("service", "tokens"),
    verbs={
        "token": Verb(
            "make, list and withdraw tokens of the service", "tamias.features.access.verbs:command"
        ),
        "audit": Verb("show every writing call", "tamias.features.access.verbs:audit"),
    },
    endpoints={"access": "tamias.features.access.endpoints:ENDPOINTS"},
)
