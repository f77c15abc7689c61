"""The dry run of `tamias crawl` and of the service: what would be fetched, and why the rest would not."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="dry_run",
    about="shows what a crawl would fetch",
    module=__name__,
    crawl_options={
        "dry-run": f"{__name__}.trial:tell_dry_run",
        "earlier-runs": f"{__name__}.trial:read_earlier",
        "prospects": f"{__name__}.trial:find_prospects",
    },
)
