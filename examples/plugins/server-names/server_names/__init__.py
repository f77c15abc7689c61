"""The software that servers say they are, counted while they are crawled."""

from tamias.plugins import Feature, Verb

FEATURES = [
    Feature(
        name="server-names",
        about="the software that servers say they are",
        module=__name__,
        tables=("server_name",),
        schema="schema.sql",
        verbs={"server-names": Verb("list the software of crawled servers", "server_names.verb:command")},
        stages={"server-names": "server_names.stage:note_server"},
        hooks={"server-names": "server_names.stage:count_servers"},
    )
]
