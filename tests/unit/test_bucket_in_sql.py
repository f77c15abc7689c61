"""Every statement of every `.sql` file names one bucket for each reference to host, queue and url.

Of the other tables that have buckets, those that change rows do; figures may read a whole table.
"""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from tamias.database.migrate import migrations
from tamias.database.sql import statements

ROOT = Path(str(files("tamias")))
OUTSIDE = ("database/schema", "database/migrations")
"""Schemas."""


def with_bucket():
    """The tables whose key begins with the bucket, by the schema."""
    found = set()
    for step in migrations():
        found.update(re.findall(r"CREATE TABLE (\w+) \(\s+bucket int2 NOT NULL", step.text))
    return sorted(found)


TABLES = with_bucket()
NAMES = "|".join(TABLES)
REFERENCE = re.compile(
    r"\b(?P<verb>FROM|JOIN|UPDATE|INTO|USING)\s+(?:tamias\.)?"
    rf"(?P<table>{NAMES})\b(?!\s*\()(?:\s+AS\s+(?P<alias>\w+))?"
)


FRONTIER = {"host", "queue", "url"}
CHANGES = re.compile(r"\b(?:UPDATE|DELETE|INSERT)\b")
WHOLE = {
    ("crawl/plan/crawl.sql", "count_failed"),
    ("features/alerts/alerts.sql", "attention"),
    ("database/steps.sql", "version_84"),
}
"""Read all buckets on purpose: at the end of a crawl with --strict, for watched portals, in an upgrade."""


def all_statements():
    for path in sorted(ROOT.rglob("*.sql")):
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith(OUTSIDE):
            package = ".".join(("tamias", *Path(place).parent.parts))
            for name, statement in statements(package, path.name).items():
                yield place, name, statement.text.decode()


STATEMENTS = list(all_statements())


def unnamed(text):
    """References without a bucket: those of a name that are more than its conditions on the bucket."""
    bare = re.sub(r"--.*|'[^']*'", "", text)
    references = {}
    for found in REFERENCE.finditer(bare):
        if found["verb"] != "INTO" and (found["table"] in FRONTIER or CHANGES.search(bare)):
            name = found["alias"] or found["table"]
            references[name] = references.get(name, 0) + 1
    return [name for name, times in references.items() if len(conditions(name, bare)) < times]


def conditions(name, text):
    one = rf"\b{name}\.bucket = %\(\w+\)b::int2"
    return re.findall(one, text)


def test_there_are_tables_and_statements_to_read():
    assert {"host", "queue", "url", "capture", "robots"} <= set(TABLES)
    assert len(STATEMENTS) > 100


@pytest.mark.parametrize(("place", "name", "text"), STATEMENTS, ids=lambda value: str(value)[:40])
def test_each_reference_names_its_bucket(place, name, text):
    if (place, name) not in WHOLE:
        assert unnamed(text) == [], f"{place}: {name}"


def test_what_reads_all_buckets_on_purpose_is_there():
    assert {(place, name) for place, name, text in STATEMENTS if unnamed(text)} == WHOLE


def test_a_reference_without_its_bucket_is_found():
    assert unnamed("SELECT url.uid FROM url JOIN host ON host.bucket = %(b)b::int2 WHERE url.qid = 1") == [
        "url"
    ]


def test_a_second_reference_without_its_bucket_is_found():
    text = "UPDATE url SET due = 1 FROM (SELECT url.uid FROM url) AS old WHERE url.bucket = %(b)b::int2"
    assert unnamed(text) == ["url"]


def test_a_bucket_of_another_table_is_not_a_named_one():
    text = "SELECT FROM host JOIN queue ON queue.bucket = host.bucket WHERE host.bucket = %(b)b::int2"
    assert unnamed(text) == ["queue"]
