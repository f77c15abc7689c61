"""Crawl reports: the log and the reports that crawl engineers know from Heritrix."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="crawl_reports",
    about="exports the log and the reports of crawls in the form of Heritrix",
    module=__name__,
    requires=("exports",),
    exports={"heritrix": f"{__name__}.reports:write_reports"},
)
