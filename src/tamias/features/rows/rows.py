"""The rows of one version of a table, filtered and sorted by DuckDB, as JSON, CSV, Parquet and a page."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import rfc3339
from tamias.archive.reader.content import Content, NoTable, Table
from tamias.features.pages.html.page import CsvTable, HtmlPage
from tamias.features.rows.filters import compile_filter, quoted
from tamias.features.service.files.delivery import FOR_NOBODY
from tamias.features.service.http.endpoints import URL, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import (
    Encoded,
    json_answer,
    number,
    parameter,
    preferred_by,
    tag_of,
)
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.history import version_numbered
from tamias.features.service.queries.usage import check_owner
from tamias.features.service.service import Service
from tamias.features.tables.limits import (
    MIB,
    ProfileLimit,
    ProfileLimits,
    ProfileRun,
    ScratchFolder,
    first_line,
    within_limits,
)
from tamias.features.tables.reader import load_table
from tamias.model.errors import UsageError
from tamias.model.resource import Resource, Version

LARGEST: Final = 64 * MIB
"""Bytes of a version whose rows are shown."""
LOADING: Final = ProfileLimits(seconds=30, memory=256 * MIB, disk=512 * MIB)
ASKING: Final = ProfileLimits(seconds=5, memory=256 * MIB, disk=512 * MIB)
MOST_ROWS: Final = 1_000
MOST_ROWS_OF_FILES: Final = 100_000
"""In one answer as CSV or Parquet."""
MOST_SKIPPED: Final = 999_999_999
_PAGE_ROWS = 50
_LOADED: Final = 4
"""Tables that stay loaded, those that were asked for last."""
_LOADED_SECONDS = 300.0
_turns = asyncio.Semaphore(2)
"""Loading takes long: most sessions are left to those who only read."""
_FORMS: Final = {
    "application/json": "json",
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
}


_AS_TEXT: Final = frozenset({"TIMESTAMP WITH TIME ZONE", "HUGEINT", "UHUGEINT"})
"""Types that JSON or Python cannot hold."""
_JSON = msgspec.json.Encoder(decimal_format="number")


class RowsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of rows of a version of a table."""

    id: str
    url: str
    title: str | None
    version: int
    captured_at: str
    columns: dict[str, str]
    """All of the table, with their types as DuckDB names them."""
    total: int
    """How many rows the filter lets through."""
    offset: int
    next: int | None
    """The offset of the rows after these."""
    rows: list[dict[str, Any]]


class RowsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A question about rows."""

    where: str = ""
    columns: tuple[str, ...] = ()
    """All where none is named."""
    sort: str = ""
    """A column; with a `-` before it, the greatest first."""
    limit: int = 100
    offset: int = 0

    def statements(self, types: dict[str, str], *, exact: bool) -> tuple[str, str, list[str]]:
        """Return SQL of the rows, and of their number, with the parameters of both. Raises `UsageError`.

        Types stay as they are where the rows are to be exact; else those that JSON cannot hold become text.
        """
        condition, values = compile_filter(self.where, types) if self.where.strip() else ("true", [])
        descending = self.sort not in types and self.sort.startswith("-")
        order = self.sort.removeprefix("-") if descending else self.sort
        for name in (*self.columns, *([order] if order else [])):
            if name not in types:
                raise UsageError(f"{name[:100]!r} is no column; there are: {', '.join(list(types)[:20])}")
        chosen = ", ".join(
            f"{quoted(name)}::VARCHAR AS {quoted(name)}"
            if types[name] in _AS_TEXT and not exact
            else quoted(name)
            for name in self.columns or types
        )
        by = f"t.{quoted(order)} {'DESC' if descending else 'ASC'} NULLS LAST, " if order else ""
        filtered = f"FROM t WHERE {condition}"
        selected = f"SELECT {chosen} {filtered} ORDER BY {by}t.rowid LIMIT {self.limit} OFFSET {self.offset}"
        return selected, f"SELECT count(*) {filtered}", values


class LoadedTable:
    """The rows of a version in a DuckDB that has access to nothing else but the file of its answers."""

    def __init__(self, content: Content) -> None:
        """Raise `HttpProblem` for what is too large or no table."""
        if content.version.byte_size > LARGEST:
            raise HttpProblem(
                422, f"versions over {LARGEST} bytes are not opened here; 'tamias export --tables' writes any"
            )
        self._run = ProfileRun(LOADING, ScratchFolder(None))
        self._file = self._run.folder.path / "rows"
        try:
            self._rows = load_table([content.table_version], self._run, history=False, written=[self._file])
        except NoTable as error:
            raise HttpProblem(422, str(error)) from error
        self._table = Table(self._rows, self._run.folder)
        self.types = dict(zip(self._table.columns, self._table.types, strict=True))
        self._turn = threading.Lock()

    def select(self, query: RowsQuery) -> tuple[list[str], list[tuple[Any, ...]], int]:
        """Return the names of columns, rows, and how many there are without the limit."""
        statement, counting, values = query.statements(self.types, exact=False)
        with self._asking():
            ((total,),) = self._rows.execute(counting, values).fetchall()
            found = self._rows.execute(statement, values)
            return [each[0] for each in found.description or ()], found.fetchall(), total

    def file(self, query: RowsQuery, form: str) -> bytes:
        """Return the rows as a file, in CSV or Parquet."""
        statement, _, values = query.statements(self.types, exact=True)
        with self._asking():
            self._rows.execute(
                f"COPY ({statement}) TO '{self._file}' (FORMAT {form}, USE_TMP_FILE false)", values
            )
            return self._file.read_bytes()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Let one question after another pass, within the limits. Raises `HttpProblem`, `UsageError`."""
        import duckdb

        try:
            with self._turn, within_limits(self._rows, ProfileRun(ASKING, self._run.folder), ASKING.memory):
                yield
        except ProfileLimit as error:
            raise HttpProblem(422, f"finding these rows takes too much: {error}; ask for less") from error
        except duckdb.DataError as error:
            raise UsageError(f"'where' does not fit the columns: {first_line(error)}") from error


ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    "/api/v1/rows",
    ResponseSpec("The rows", RowsPage, tuple(_FORMS)[1:]),
    Parameter("url", "the URL of the dataset, or its id", URL, required=True),
    Parameter("version", "a version's number; the newest without it"),
    Parameter("where", "a filter, such as: price >= 2.5 AND name ILIKE '%nut%'"),
    Parameter("columns", "the columns to return, with commas, or repeated"),
    Parameter("sort", "a column to sort by; with - before it, the greatest first"),
    Parameter("offset", "how many rows to leave out first"),
    Parameter("limit", "how many rows; up to 100,000 as CSV or Parquet", {"type": "integer", "minimum": 1}),
    Parameter("format", "json, csv or parquet", {"enum": list(_FORMS.values())}),
)
async def rows(request: Request, service: Service) -> Response:
    """Return rows of a version of a table, as JSON, CSV or Parquet."""
    form = parameter(request, "format") or _FORMS[preferred_by(request, [*_FORMS]) or "application/json"]
    kinds = {name: kind for kind, name in _FORMS.items()}
    if form not in kinds:
        raise HttpProblem(400, f"'format' must be one of {', '.join(kinds)}")
    most = MOST_ROWS if form == "json" else MOST_ROWS_OF_FILES
    query = _query(request, number(request, "limit", 100, 1, most))
    resource, version, table, headers = await _opened(request, service)
    if form != "json":
        content = await service.pool.run(lambda _: table.file(query, form))
        return Response(content, headers=headers, media_type=kinds[form])
    found = await service.pool.run(lambda _: table.select(query))
    content = _JSON.encode(_described(resource, version, table, query, found))
    return json_answer(request, Encoded(content, tag_of(content)), headers=headers)


def _query(request: Request, limit: int) -> RowsQuery:
    columns = [each for each in request.query_params.getlist("columns") if each]
    return RowsQuery(
        where=parameter(request, "where") or "",
        columns=tuple(columns if len(columns) > 1 else columns[0].split(",") if columns else ()),
        sort=parameter(request, "sort") or "",
        limit=limit,
        offset=number(request, "offset", 0, 0, MOST_SKIPPED),
    )


async def _opened(
    request: Request, service: Service
) -> tuple[Resource, Version, LoadedTable, dict[str, str]]:
    """Return the table that a request names, and headers. Raises `HttpProblem` where it is withheld."""
    named, wanted = parameter(request, "url"), number(request, "version", 0, 1, MOST_SKIPPED)
    if named is None:
        raise HttpProblem(400, "which table? name its dataset with url=")
    history = await service.histories.find(named)
    newest = history.versions[-1].number if history.versions else 0
    resource = history.resource
    version = await service.pool.run(
        lambda db: version_numbered(db, resource, history.versions, wanted or newest)
    )
    headers = {"Cache-Control": "no-cache"}
    if reason := await service.usages.withheld(version):
        check_owner(request, reason)
        headers["Cache-Control"] = FOR_NOBODY
    loaded: OrderedDict[str, LoadedTable] = service.parts.setdefault("rows", OrderedDict())
    key = f"{version.sha256} {version.media_type} {version.declared_type}"
    async with _turns:
        table = loaded.get(key)
        if table is None:
            table = await service.pool.run(lambda db: LoadedTable(Content(resource, version, db.reader)))
            loaded[key] = table
            # What is forgotten meanwhile does not stay for long.
            asyncio.get_running_loop().call_later(_LOADED_SECONDS, loaded.pop, key, None)
            while len(loaded) > _LOADED:
                loaded.popitem(last=False)
    return resource, version, table, headers


def _described(
    resource: Resource,
    version: Version,
    table: LoadedTable,
    query: RowsQuery,
    found: tuple[list[str], list[tuple[Any, ...]], int],
) -> RowsPage:
    names, some, total = found
    end = query.offset + len(some)
    return RowsPage(
        id=resource.id,
        url=resource.url,
        title=resource.title,
        version=version.number,
        captured_at=rfc3339(version.captured_at),
        columns=table.types,
        total=total,
        offset=query.offset,
        next=end if some and end < total else None,
        rows=[dict(zip(names, row, strict=True)) for row in some],
    )


_OPERATORS: Final = {
    "=": "{} = {}",
    "not": "{} != {}",
    "less": "{} < {}",
    "more": "{} > {}",
    "contains": "{} ILIKE {}",
    "empty": "{} IS NULL",
}


async def _page(request: Request, service: Service) -> dict[str, Any]:
    """Return rows for people; what is wrong with a filter is said beside it."""
    query = _query(request, _PAGE_ROWS)
    column, operator, value = (parameter(request, name) or "" for name in ("column", "is", "value"))
    if column and operator in _OPERATORS:
        text = f"%{value}%" if operator == "contains" else value
        added = _OPERATORS[operator].format(quoted(column), "'" + text.replace("'", "''") + "'")
        query = msgspec.structs.replace(
            query, where=f"({query.where}) AND {added}" if query.where else added, offset=0
        )
    resource, version, table, _ = await _opened(request, service)
    error = None
    try:
        found = await service.pool.run(lambda _: table.select(query))
    except (UsageError, HttpProblem) as problem:
        error, found = str(problem), ([], [], 0)
    described = msgspec.structs.asdict(_described(resource, version, table, query, found))
    return {
        **described,
        "shown": found[0],
        "where": query.where,
        "sort": query.sort,
        "limit": query.limit,
        "error": error,
        "operators": list(_OPERATORS),
    }


PAGE = HtmlPage(
    path="/rows",
    template="rows.html",
    view=_page,
    data="/api/v1/rows",
    elsewhere=True,
    table=lambda view: CsvTable(view["shown"], [list(each.values()) for each in view["rows"]]),
)
