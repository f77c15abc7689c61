"""Validation: tables against the schemas that are published next to them, by frictionless and csvw."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="validation",
    about="checks versions of tables against CSVW, datapackage.json and Table Schema next to them",
    module=__name__,
    requires=("archive",),
    tables=("schema_file", "schema_check"),
    schema="schema.sql",
    settings=f"{__name__}.settings:ValidationSettings",
    chores={"validation": f"{__name__}.checks:check_versions"},
    erasers={"validation": f"{__name__}.checks:erase"},
    version_notes={"validation": f"{__name__}.notes:version_notes"},
)
