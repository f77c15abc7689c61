"""The pages for people: HTML made here, which needs no script. What was crawled is never trusted.

Each page has its data as JSON, and as CSV where it is a table. None of them is part of the API's description.
"""

from tamias.plugins import Feature

FEATURE = Feature(
    name="pages",
    about="HTML pages of the service",
    module=__name__,
    requires=("service", "catalogue", "dcat", "archive", "stats", "tokens"),
    routes={"pages": "tamias.features.pages.routes:add_routes"},
    problem_pages={"pages": "tamias.features.pages.html.page:problem_page"},
)
