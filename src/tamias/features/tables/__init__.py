"""Tables: profiles of content, and versions of files as tables.

A profile says what is in a body: types, tables with their columns, structure, places, members, statements.
"""

from tamias.plugins import Feature

FEATURE = Feature(
    name="tables",
    about="profiles content, and reads versions as tables",
    module=__name__,
    requires=("dcat", "archive"),
    profilers={
        "small": "tamias.features.tables.chores:pack_small_profile",
        "document": "tamias.features.tables.body:document_profile",
        "waiting": "tamias.features.tables.chores:profile_some",
    },
    table_readers={"table": "tamias.features.tables.reader:read_table"},
    chores={"tables": "tamias.features.tables.chores:profile_and_join"},
)
