"""Dagster: a crawl and a watched table as assets, every night. Run: dagster dev -f dagster_assets.py"""

import os

import dagster

import tamias

DATA = os.environ.get("TAMIAS_DATA", "tamias-data")
SITE = os.environ.get("SITE", "https://example.org/")
TABLE = os.environ.get("TABLE", "https://example.org/data.csv")


@dagster.asset
def crawled_site() -> dagster.MaterializeResult:
    """The site, resumed where the last run stopped."""
    end = tamias.crawl(SITE, data=DATA, depth=1, scope="host", max_time=3600)
    return dagster.MaterializeResult(metadata={"visited": end.visited, "quads": end.quads, **end.outcomes})


@dagster.asset(deps=[crawled_site])
def watched_table() -> dagster.MaterializeResult:
    """The table, with what changed since its last version."""
    with tamias.Archive(DATA) as archive:
        archive.add(TABLE)
        archive.visit(TABLE)
        versions = archive.versions(TABLE)
        added = archive.diff(TABLE).added if len(versions) > 1 else len(archive.get(TABLE).table())
    return dagster.MaterializeResult(metadata={"versions": len(versions), "rows_added": added})


definitions = dagster.Definitions(
    assets=[crawled_site, watched_table],
    schedules=[dagster.ScheduleDefinition(name="nightly", cron_schedule="0 3 * * *", target="*")],
)
