"""The catalogue by OAI-PMH 2.0: each archived resource a record, in Dublin Core or DCAT-AP.

A resumption token says all that the next request needs, so that nothing is kept between requests and none
expires. A record's datestamp is the time of its last version.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape, quoteattr

from pyoxigraph import Quad
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import first_millisecond, milliseconds, rfc3339
from tamias.features.dcat.terms import CatalogueBases, bases_of
from tamias.features.published.graphs import SQL, catalogue_graphs
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import LATEST, base_of, body
from tamias.features.service.http.rdf import written
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.errors import UsageError
from tamias.model.url import host

RECORDS_A_PAGE: Final = 100
_MOST_BODY: Final = 10_000
_OAI: Final = "http://www.openarchives.org/OAI/2.0/"
_XML: Final = "text/xml"
_FORMATS: Final = {
    "oai_dc": (f"{_OAI}oai_dc.xsd", f"{_OAI}oai_dc/"),
    "dcat": (f"{_OAI}rdf.xsd", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
}
_SELECTIVE: Final = frozenset({"from", "until", "set", "metadataPrefix", "resumptionToken"})
_TOKEN: Final = re.compile(r"(oai_dc|dcat)!(-?\d{1,19})!(\d{1,19})!([0-9a-f]{24})!(\d{1,12})")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")
_NO_XML: Final = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_EARLIEST: Final = -(2**62)


class OaiError(Exception):
    """An error of the protocol: a code and a message."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


class _Selection(NamedTuple):
    """The selection of a list, and the position in it."""

    prefix: str
    since: int = _EARLIEST
    until: int = LATEST
    after: str = ""
    cursor: int = 0

    @property
    def token(self) -> str:
        return "!".join(map(str, self))


class _OaiRecord(NamedTuple):
    resource: str
    captured_at: int


def _answer(repository: "_Repository", pairs: Sequence[tuple[str, str]]) -> bytes:
    arguments, echoed = dict(pairs), ""
    try:
        verb = _checked(pairs)
        inner = "".join(_VERBS[verb][0](repository, arguments))
        content = f"<{verb}>{inner}</{verb}>"
    except OaiError as error:
        content = f'<error code="{error.code}">{_text(str(error))}</error>'
    if not content.startswith(('<error code="badVerb"', '<error code="badArgument"')):
        echoed = "".join(f" {name}={quoteattr(_NO_XML.sub('', value))}" for name, value in arguments.items())
    now = _stamp(repository.session.now())
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="{_OAI}">'
        f"<responseDate>{now}</responseDate><request{echoed}>{_text(repository.base)}</request>{content}</OAI-PMH>"
    ).encode()


def _checked(pairs: Sequence[tuple[str, str]]) -> str:
    """The verb. Raises `OaiError` for what the protocol does not allow."""
    verbs = [value for name, value in pairs if name == "verb"]
    if len(verbs) != 1 or verbs[0] not in _VERBS:
        raise OaiError("badVerb", f"the verb must be one of {', '.join(_VERBS)}, given once")
    names = [name for name, _ in pairs if name != "verb"]
    if unknown := set(names) - _VERBS[verbs[0]][1]:
        raise OaiError("badArgument", f"{verbs[0]} does not take {', '.join(sorted(unknown))[:200]}")
    if len(names) != len(set(names)):
        raise OaiError("badArgument", "an argument is given more than once")
    if "resumptionToken" in names and len(names) > 1:
        raise OaiError("badArgument", "resumptionToken excludes all other arguments")
    return verbs[0]


class _Repository:
    """The archive as a repository."""

    def __init__(self, db: ServiceSession, bases: CatalogueBases, base: str, email: str) -> None:
        self.session = db.session
        self.bases = bases
        self.base = base
        self._email = email
        self._prefix = f"oai:{_host(bases)}:"

    def identify(self, _arguments: Mapping[str, str]) -> Iterator[str]:
        earliest = self.session.fetch_all(SQL["earliest_change"])[0][0]
        for name, value in (
            ("repositoryName", self.bases.title),
            ("baseURL", self.base),
            ("protocolVersion", "2.0"),
            ("adminEmail", self._email),
            ("earliestDatestamp", _stamp(earliest or 0)),
            ("deletedRecord", "no"),
            ("granularity", "YYYY-MM-DDThh:mm:ssZ"),
        ):
            yield f"<{name}>{_text(value)}</{name}>"

    def formats(self, arguments: Mapping[str, str]) -> Iterator[str]:
        if "identifier" in arguments:
            self._record(arguments["identifier"])
        for prefix, (schema, space) in _FORMATS.items():
            yield (
                f"<metadataFormat><metadataPrefix>{prefix}</metadataPrefix><schema>{schema}</schema>"
                f"<metadataNamespace>{space}</metadataNamespace></metadataFormat>"
            )

    def sets(self, _arguments: Mapping[str, str]) -> Iterator[str]:
        raise OaiError("noSetHierarchy", "the archive has no sets")

    def identifiers(self, arguments: Mapping[str, str]) -> Iterator[str]:
        selection = _selection(arguments)
        records = self._page(selection)
        yield from map(self._header, records[:RECORDS_A_PAGE])
        yield _resumption(selection, records)

    def records(self, arguments: Mapping[str, str]) -> Iterator[str]:
        selection = _selection(arguments)
        records = self._page(selection)
        yield from self._described(records, selection.prefix)
        yield _resumption(selection, records)

    def record(self, arguments: Mapping[str, str]) -> Iterator[str]:
        if "identifier" not in arguments:
            raise OaiError("badArgument", "GetRecord needs an identifier")
        prefix = _prefix(arguments)
        return self._described([self._record(arguments["identifier"])], prefix)

    def _record(self, identifier: str) -> _OaiRecord:
        name = identifier.removeprefix(self._prefix)
        rows = self.session.fetch_all(SQL["oai_one"], {"resource": _NO_XML.sub("", name)})
        if not rows or name == identifier:
            raise OaiError("idDoesNotExist", f"{identifier[:200]} is not in the archive")
        return _OaiRecord(*rows[0])

    def _page(self, selection: _Selection) -> list[_OaiRecord]:
        values = {
            "from": selection.since, "until": selection.until, "after": selection.after,
            "limit": RECORDS_A_PAGE + 1,
        }  # fmt: skip
        found = [_OaiRecord(*row) for row in self.session.fetch_all(SQL["oai_page"], values)]
        if not found and not selection.cursor:
            raise OaiError("noRecordsMatch", "no record has a datestamp in this span")
        return found

    def _header(self, record: _OaiRecord) -> str:
        return (
            f"<header><identifier>{self._prefix}{record.resource}</identifier>"
            f"<datestamp>{_stamp(record.captured_at)}</datestamp></header>"
        )

    def _described(self, records: Sequence[_OaiRecord], prefix: str) -> Iterator[str]:
        for record in records[:RECORDS_A_PAGE]:
            quads = catalogue_graphs(self.session, [record.resource], self.bases)
            if prefix == "oai_dc":
                metadata = _dublin_core(quads)
            else:
                metadata = re.sub(r"^\s*<\?xml[^>]*\?>", "", written(quads, "rdf").decode())
            yield f"<record>{self._header(record)}<metadata>{metadata}</metadata></record>"


def _selection(arguments: Mapping[str, str]) -> _Selection:
    """Return the selection of a request. Raises `OaiError`."""
    if "resumptionToken" in arguments:
        found = _TOKEN.fullmatch(arguments["resumptionToken"])
        if found is None or max(abs(int(found[2])), int(found[3])) > LATEST:
            raise OaiError("badResumptionToken", "this token is not one that a list returned")
        return _Selection(found[1], int(found[2]), int(found[3]), found[4], int(found[5]))
    if "set" in arguments:
        raise OaiError("noSetHierarchy", "the archive has no sets")
    dates = [arguments[name] for name in ("from", "until") if name in arguments]
    if not all(map(_DATE.fullmatch, dates)) or len({len(date) for date in dates}) > 1:
        raise OaiError("badArgument", "from and until are days, or both times such as 2026-01-31T12:00:00Z")
    try:
        since = first_millisecond(arguments["from"]) if "from" in arguments else _EARLIEST
        until = milliseconds(arguments["until"]) if "until" in arguments else LATEST
    except UsageError as error:
        raise OaiError("badArgument", str(error)) from None
    return _Selection(_prefix(arguments), since, until)


def _prefix(arguments: Mapping[str, str]) -> str:
    prefix = arguments.get("metadataPrefix")
    if prefix is None:
        raise OaiError("badArgument", "metadataPrefix is missing")
    if prefix not in _FORMATS:
        raise OaiError("cannotDisseminateFormat", f"the formats are {', '.join(_FORMATS)}")
    return prefix


def _resumption(selection: _Selection, records: Sequence[_OaiRecord]) -> str:
    if len(records) <= RECORDS_A_PAGE:
        return f'<resumptionToken cursor="{selection.cursor}"/>' if selection.cursor else ""
    last = records[RECORDS_A_PAGE - 1].resource
    following = selection._replace(after=last, cursor=selection.cursor + RECORDS_A_PAGE)
    return f'<resumptionToken cursor="{selection.cursor}">{following.token}</resumptionToken>'


def _dublin_core(quads: Sequence[Quad]) -> str:
    # Only who asks for this loads the readers of DCAT.
    from tamias.features.dcat.datasets.from_dcat import datasets_in

    (dataset,) = datasets_in(quads)
    said = [
        ("title", dataset.title),
        ("description", dataset.description),
        ("date", dataset.modified),
        ("type", "Dataset"),
        ("identifier", dataset.iri),
        *(("source", each.url) for each in dataset.distributions[:1]),
        *(("relation", each.url) for each in dataset.distributions[1:]),
        *(("format", each) for each in dict.fromkeys(each.media_type for each in dataset.distributions)),
    ]
    inner = "".join(f"<dc:{name}>{_text(value)}</dc:{name}>" for name, value in said if value)
    space = _FORMATS["oai_dc"][1]
    return (
        f'<oai_dc:dc xmlns:oai_dc="{space}" xmlns:dc="http://purl.org/dc/elements/1.1/">{inner}</oai_dc:dc>'
    )


def _host(bases: CatalogueBases) -> str:
    return host(bases.service) or "localhost"


def _stamp(moment: int) -> str:
    return rfc3339(moment)[:19] + "Z"


def _text(value: str) -> str:
    return escape(_NO_XML.sub("", value))


_VERBS: Final[dict[str, tuple[Any, frozenset[str]]]] = {
    "Identify": (_Repository.identify, frozenset()),
    "ListMetadataFormats": (_Repository.formats, frozenset({"identifier"})),
    "ListSets": (_Repository.sets, frozenset({"resumptionToken"})),
    "ListIdentifiers": (_Repository.identifiers, _SELECTIVE),
    "ListRecords": (_Repository.records, _SELECTIVE),
    "GetRecord": (_Repository.record, frozenset({"identifier", "metadataPrefix"})),
}
"""The verbs, each with the arguments that it takes."""

ENDPOINTS = EndpointTable()
_PARAMETERS = tuple(
    Parameter(name, about)
    for name, about in {
        "verb": f"one of {', '.join(_VERBS)}",
        "metadataPrefix": f"the format: {' or '.join(_FORMATS)}",
        "identifier": "of one record",
        "from": "records with a version since this day or time",
        "until": "records whose last version is not later",
        "set": "there are no sets",
        "resumptionToken": "as the page before returned it",
    }.items()
)
_ANSWERS = {200: ResponseSpec("A response of OAI-PMH 2.0", media_types=(_XML,))}


@ENDPOINTS.post("/oai", _ANSWERS, about="The same, with the arguments in the body")
@ENDPOINTS.get("/oai", _ANSWERS, *_PARAMETERS, about="The catalogue by OAI-PMH 2.0")
async def oai(request: Request, service: Service) -> Response:
    """Answers one of the six verbs; errors are XML with status 200, as the protocol says."""
    text = request.scope["query_string"].decode("latin-1")
    if request.method == "POST":
        text = (await body(request, _MOST_BODY)).decode("utf-8", "replace")
    pairs, bases = parse_qsl(text, keep_blank_values=True), bases_of(service.settings.serve)
    contact, base = service.settings.fetch.contact, f"{base_of(request)}/oai"
    email = contact.removeprefix("mailto:") if "@" in contact else f"postmaster@{_host(bases)}"
    content = await service.pool.run(lambda db: _answer(_Repository(db, bases, base, email), pairs))
    return Response(content, headers={"Cache-Control": "no-cache"}, media_type=_XML)
