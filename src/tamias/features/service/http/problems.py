"""Errors as clients meet them: `application/problem+json` (RFC 9457) with a status that tells the truth."""

import logging
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.blobs.packs import StoreUnavailable
from tamias.archive.reader.library import NotArchived
from tamias.archive.tombstones import Forgotten
from tamias.model.errors import DatabaseUnavailable, DiskFull, TamiasError, UrlError, UsageError

MEDIA_TYPE = "application/problem+json"
UNREAD = {"Connection": "close"}
"""Told with a refusal that leaves a body unread: the connection is of no use any more."""
_LOG = logging.getLogger("tamias.serve")


class ProblemDocument(msgspec.Struct, frozen=True):
    """A problem document (RFC 9457)."""

    status: int
    title: str
    """The status in words."""
    detail: str
    """What happened, to what, and what to do."""
    type: str = "about:blank"


class HttpProblem(Exception):
    """An answer that is a refusal."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """The document."""
        document = ProblemDocument(self.status, HTTPStatus(self.status).phrase, self.detail)
        content = msgspec.json.encode(document)
        return Response(content, self.status, headers=self.headers, media_type=MEDIA_TYPE)


def problem_of(error: Exception) -> HttpProblem:
    """Return an error as a client sees it; errors of the service itself are logged."""
    match error:
        case HttpProblem():
            return error
        case HTTPException():
            return HttpProblem(error.status_code, str(error.detail), error.headers)
        case Forgotten():
            return HttpProblem(410, str(error))
        case NotArchived():
            return HttpProblem(404, str(error))
        case UsageError() | UrlError() | msgspec.DecodeError():
            return HttpProblem(400, str(error))
        case DatabaseUnavailable() | DiskFull() | StoreUnavailable():
            return HttpProblem(503, str(error), {"Retry-After": "5"})
        case BlobDamaged() | BlobMissing():
            _LOG.error("%s", error)
            return HttpProblem(500, f"the archived bytes cannot be returned: {error}")
        case TamiasError():
            _LOG.error("%s", error)
            return HttpProblem(500, str(error))
        case _:
            _LOG.error("an error of the service itself", exc_info=error)
            return HttpProblem(500, "internal error; see the log of the service")
