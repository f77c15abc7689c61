"""Changes that alerts are about: datasets that a portal lost, licences, and columns of tables.

The alerts that stand are served as JSON and as an Atom feed.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import of_row, rfc3339
from tamias.archive.sources.source_records import records_at
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.alerts.settings import AlertKind, AlertsSettings
from tamias.features.dcat.datasets.mapping import BAD, dataset_again
from tamias.features.dcat.profiles import stored_profile
from tamias.features.feeds.changes import ATOM, Feed, FeedEntry, atom
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import ListPage, base_of, page_answer, parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service
from tamias.model.profile import Profile

_EXPECTED = (
    "(resource.versions > 0 OR NOT EXISTS (SELECT FROM source WHERE source.resource = resource.resource"
    " AND source.portal IS NOT NULL))"
)
SQL = statements("tamias.features.alerts", "alerts.sql", expected=_EXPECTED)
WEEK_MS = 7 * 86_400_000
"""The time that a change is an alert."""
_OVERLAP_MS = 3_600_000
"""A version and its profile may be committed so long after their times."""
_MOST_NAMED = 10
_PAGE = 200
_MOST_RECORD = 1 << 20


class Alert(msgspec.Struct, frozen=True):
    """A problem or a change that is reported."""

    key: str
    """The same for as long as it is the same thing."""
    kind: AlertKind
    text: str
    since: int
    """Milliseconds: the time when it began."""
    subject: str = ""
    """The id of a resource, the address of a portal or the name of a host."""


def read_changes(session: Session, settings: AlertsSettings, now: int) -> tuple[list[Alert], dict[str, int]]:
    """Return alerts on what changed since the last look, and up to when each source has been looked at.

    The first look at a portal, and the first at tables, finds nothing: later ones are compared with it.
    """
    row = session.fetch_one(SQL["round_at"], {"kind": "columns"})
    found, rounds = [], {"columns": now}
    if row is not None:
        found += list(_columns(session, row[0] - _OVERLAP_MS, now))
    for portal, url, harvested, since in session.fetch_all(SQL["harvested"]):
        rounds[f"portal {portal}"] = harvested
        if since is not None:
            found += _lost(session, settings, portal, url, since, harvested)
            found += _licences(session, portal, url, since, harvested)
    return found, rounds


def _lost(
    session: Session, settings: AlertsSettings, portal: int, url: str, since: int, harvested: int
) -> Iterator[Alert]:
    [(lost, before)] = session.fetch_all(SQL["count_lost"], {"portal": portal, "since": since})
    if lost and (lost >= settings.lost or 100 * lost >= settings.lost_percent * before):
        times = f"between {rfc3339(since)} and {rfc3339(harvested)}"
        text = f"{url} lost {lost:,} of {before:,} datasets {times}."
        yield Alert(f"lost {url} {harvested}", "lost", text, harvested, url)


def _licences(session: Session, portal: int, url: str, since: int, harvested: int) -> Iterator[Alert]:
    rows = session.fetch_all(SQL["changed_records"], {"portal": portal, "since": since})
    found = []
    for start in range(0, len(rows), _PAGE):
        iris = [iri for (iri,) in rows[start : start + _PAGE]]
        before, after = (_licences_at(session, url, iris, at) for at in (since, harvested))
        found += [
            (iri, said, after[iri]) for iri, said in before.items() if iri in after and said != after[iri]
        ]
    if found:
        iri, old, new = found[0]
        text = f"{len(found):,} datasets of {url} changed their licence, such as {iri}: {old or 'none'}"
        key = f"licence {url} {harvested}"
        yield Alert(key, "licence", f"{text}, now {new or 'none'}.", harvested, url)


def _licences_at(session: Session, portal: str, iris: Sequence[str], at: int) -> dict[str, str]:
    found = {}
    for record, _ in records_at(session, portal, iris, at, _MOST_RECORD):
        try:
            dataset = dataset_again(record)
        except (*BAD, SyntaxError):
            continue  # by rules that are no more
        if dataset is not None:
            said = {dataset.licence, *(form.licence for form in dataset.distributions)}
            found[record.iri] = " and ".join(sorted(filter(None, said)))
    return found


def _columns(session: Session, since: int, now: int) -> Iterator[Alert]:
    rows = session.fetch_all(SQL["changed_tables"], {"since": since, "week": now - WEEK_MS})
    for resource, url, number, captured_at, *profiles in rows:
        old, new = (_types(stored_profile(*profiles[place : place + 2])) for place in (0, 2))
        parts = {
            "added": [name for name in new if name not in old],
            "removed": [name for name in old if name not in new],
            "changed their type": [
                f"{name} ({old[name]}, now {new[name]})"
                for name in new
                if name in old and old[name] != new[name]
            ],
        }
        said = "; ".join(f"{what}: {_listed(names)}" for what, names in parts.items() if names)
        if said:
            text = f"Columns of {url} changed with version {number}: {said}."
            yield Alert(f"columns {resource} {number}", "columns", text, captured_at, resource)


def _types(profile: Profile) -> dict[str, str]:
    """Return the types of columns by their names, after that of their table where there are several."""
    several = len(profile.tables) > 1
    return {
        f"{table.name}: {column.name}" if several else column.name: column.datatype
        for table in profile.tables
        for column in table.columns
    }


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


class StandingAlert(msgspec.Struct, frozen=True, kw_only=True):
    """A problem or a change that is listed."""

    id: str
    kind: str
    text: str
    since: str


ENDPOINTS = EndpointTable()
_PARAMETERS = (
    Parameter("kind", "only this kind", {"enum": list(get_args(AlertKind))}),
    Parameter("about", "only this host, portal or resource, by its name, address or id"),
)


@ENDPOINTS.get("/api/v1/alerts", ResponseSpec("Alerts", ListPage[StandingAlert]), *_PARAMETERS)
async def listing(request: Request, service: Service) -> Response:
    """List what needs attention, the latest first."""
    return page_answer(request, await _standing(request, service), None)


@ENDPOINTS.get("/api/v1/alerts.atom", ResponseSpec("A feed", media_types=(ATOM,)), *_PARAMETERS)
async def feed(request: Request, service: Service) -> Response:
    """The same as an Atom feed."""
    base = base_of(request)
    entries = tuple(
        FeedEntry(
            id=f"urn:tamias:alert:{sha256(f'{each.id} {each.since}'.encode()).hexdigest()[:32]}",
            title=f"{each.kind}: {each.text[:200]}", updated=each.since, page=f"{base}/",
            data=f"{base}/api/v1/alerts", summary=each.text,
        )
        for each in await _standing(request, service)
    )  # fmt: skip
    here, title = f"{base}{request.url.path}", "What needs attention in the archive"
    content = atom(
        Feed(id="urn:tamias:alerts", title=title, home=f"{base}/", here=here, further=None, entries=entries)
    )
    return Response(content, media_type=ATOM, headers={"Cache-Control": "no-cache"})


async def _standing(request: Request, service: Service) -> list[StandingAlert]:
    kind = parameter(request, "kind")
    if kind is not None and kind not in get_args(AlertKind):
        raise HttpProblem(400, f"'kind' is one of {', '.join(get_args(AlertKind))}")
    values = {"kinds": kind and [kind], "subject": parameter(request, "about")}
    rows = await service.pool.run(lambda db: db.session.fetch_all(SQL["standing"], values))
    return [of_row(StandingAlert, row) for row in reversed(rows)]
