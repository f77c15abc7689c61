"""The embedded server: PostgreSQL under the data directory, owned by a keeper while somebody uses it."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="embedded",
    about="runs a PostgreSQL server for a data directory",
    module=__name__,
    keepers={"database": f"{__name__}.keeper"},
)
