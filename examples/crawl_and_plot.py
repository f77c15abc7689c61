"""Crawl a site, archive one of its tables, compare its last two versions and plot how it grew."""

import sys

import matplotlib.pyplot as plt

import tamias

page, table = sys.argv[1:3]
end = tamias.crawl(page, depth=1, scope="host")
print(f"{end.visited} URLs, {end.quads} statements")  # noqa: T201
with tamias.Archive() as archive:
    archive.add(table)
    archive.visit(table)
    versions = archive.versions(table)
    if len(versions) > 1:
        change = archive.diff(table)
        print(f"{change.added} rows added, {change.removed} removed, {change.changed} changed")  # noqa: T201
    rows = [len(archive.get(table, version=each.number).table()) for each in versions]
plt.step([each.captured_at for each in versions], rows, where="post", marker="o")
plt.savefig("growth.svg")
