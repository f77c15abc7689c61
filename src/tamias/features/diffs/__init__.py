"""Differences: what changed from one version of a file to another, in the terms of what the file is."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="diffs",
    about="compares versions: rows, statements, JSON values, sheets, members, lines or bytes",
    module=__name__,
    requires=("tables", "archive"),
    verbs={"diff": Verb("show what changed between two versions", "tamias.features.diffs.verb:command")},
    comparisons={
        "diff": "tamias.features.diffs.compare:diff",
        "graph_history": "tamias.features.diffs.graph_states:graph_history",
        "graphs": "tamias.features.diffs.graph_changes:changes_between",
        "changed_since": "tamias.features.diffs.graph_changes:changed_since",
        "states": "tamias.features.diffs.graph_states:graph_pair",
        "sparql_update": "tamias.features.diffs.updates:sparql_update",
    },
)
