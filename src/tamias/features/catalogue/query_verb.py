"""`tamias query`: query the catalogue and the crawled graphs."""

import re
import sys
from contextlib import closing
from pathlib import Path
from shutil import copyfileobj
from typing import TYPE_CHECKING

import click

from tamias.cli.console.options import CommonOptions, archive_at, common, print_table, start_database_early
from tamias.cli.console.output import to_stdout
from tamias.model.errors import UsageError

if TYPE_CHECKING:
    from tamias.features.catalogue.exchange import Answer

_ACCEPT = {
    "table": "text/tab-separated-values, application/n-triples;q=0.9",
    "json": "application/sparql-results+json, application/ld+json;q=0.9",
    "csv": "text/csv",
    "nquads": "application/n-quads",
}
_LONGEST_QUERY = 1 << 20
_UPDATE = re.compile(
    r"(?:\s++|#.*+\n|(?:PREFIX\s++[^\s<]*+\s*+|BASE\s*+)<[^>]*+>)*+"
    r"(INSERT|DELETE|LOAD|CLEAR|CREATE|DROP|COPY|MOVE|ADD|WITH)\b",
    re.IGNORECASE,
)
"""Match the verb of an update, after what may stand before it."""


@click.command()
@click.argument("sparql")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_ACCEPT)),
    help="Output format; nquads for CONSTRUCT and DESCRIBE. [table; json with --json]",
)
@click.option("--at", metavar="TIME", help="Graphs and catalogue as they were: RFC 3339 or a date. [now]")
@common
def command(place: CommonOptions, sparql: str, form: str | None, at: str | None) -> None:
    """Queries the catalogue and the crawled graphs, all together or one by one with GRAPH.

    SPARQL is a query, @FILE to read it from a file, or - to read it from stdin. The usual prefixes (dcat,
    dct, prov, csvw, ...) need not be declared. FROM may name versions: their IRIs, files or Mementos.

    Example: tamias query 'SELECT ?url ?title { ?url dct:hasVersion ?version ; dct:title ?title }'
    """
    form = form or ("json" if place.json else "table")
    query = _query(sparql)
    if not query.strip():
        raise UsageError("the query is empty")
    if update := _UPDATE.match(query):
        raise UsageError(f"{update[1].upper()} is an update, and 'tamias query' only reads")
    start_database_early(place)
    with closing(_ask(place, query, _ACCEPT[form], at).content) as content:
        if form == "table":
            print_table(line.decode("utf-8", "replace").rstrip("\n").split("\t") for line in content)
        else:
            to_stdout(lambda out: copyfileobj(content, out))


def _ask(place: CommonOptions, query: str, accept: str, at: str | None) -> "Answer":
    from tamias.features.catalogue.archive_queries import ArchiveQueries

    settings = place.settings().settings
    with archive_at(place) as archive, closing(ArchiveQueries(archive, settings)) as queries:
        return queries.ask(query, accept, at)


def _query(sparql: str) -> str:
    try:
        if sparql == "-":
            content = sys.stdin.buffer.read(_LONGEST_QUERY + 1)
        elif sparql.startswith("@"):
            with Path(sparql[1:]).open("rb") as file:
                content = file.read(_LONGEST_QUERY + 1)
        else:
            return sparql
        if len(content) > _LONGEST_QUERY:
            raise UsageError(f"the query has more than {_LONGEST_QUERY} bytes")
        return content.decode()
    except OSError as error:
        raise UsageError(f"cannot read the query {sparql}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the query {sparql} is not UTF-8 at byte {error.start}") from error
