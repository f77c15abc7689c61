"""Rows: versions of tables by REST and on a page, filtered and sorted."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="rows",
    about="shows the rows of tables, filtered and sorted",
    module=__name__,
    requires=("tables", "service", "pages"),
    endpoints={"rows": "tamias.features.rows.rows:ENDPOINTS"},
    pages={"rows": "tamias.features.rows.rows:PAGE"},
)
