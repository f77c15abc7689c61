"""Which form of a page a client would rather have, and whether it takes it packed."""

import gzip

from starlette.requests import Request
from starlette.responses import Response

from tamias.crawl.catalogue.result_formats import weighed
from tamias.serve.http.problems import HttpProblem

FORMS = {"html": "text/html", "json": "application/json", "csv": "text/csv"}
_JSON = ("application/problem+json", "application/json")
_LONGEST_ACCEPT = 4096
_WORTH_PACKING = 1400
"""Bytes; less fits into one packet anyway."""
_LEVEL = 5


def wanted_form(request: Request) -> str:
    """`html`, `json` or `csv`: as `?format=` says, else as the Accept header does."""
    told = request.query_params.get("format")
    if told is None:
        return preferred(request.headers.get("accept", ""))
    if told not in FORMS:
        raise HttpProblem(400, f"'format' must be one of {', '.join(FORMS)}")
    return told


def preferred(accept: str) -> str:
    """The form that an Accept header names with the greatest weight; a page where it names none.

    >>> preferred("text/html,*/*;q=0.8"), preferred("*/*"), preferred("application/json, text/csv;q=0.5")
    ('html', 'html', 'json')
    """
    weights = _weights(accept)
    best = max(FORMS, key=lambda form: weights.get(FORMS[form], 0.0))
    return best if weights.get(FORMS[best], 0.0) > 0 else "html"


def prefers_html(accept: str) -> bool:
    """Whether an Accept header would rather have a page than JSON.

    >>> prefers_html("text/html,*/*;q=0.8"), prefers_html("*/*")
    (True, False)
    >>> prefers_html("text/html;q=0.5, application/json")
    False
    """
    weights = _weights(accept)
    return weights.get("text/html", 0.0) > max(weights.get(name, 0.0) for name in _JSON)


def packed(request: Request, answer: Response) -> Response:
    """The same answer, smaller where the client takes gzip."""
    content = bytes(getattr(answer, "body", b""))  # what is streamed has none
    if len(content) < _WORTH_PACKING or "content-encoding" in answer.headers or not takes_gzip(request):
        return answer
    answer.body = gzip.compress(content, _LEVEL, mtime=0)
    answer.headers["Content-Encoding"] = "gzip"
    answer.headers["Content-Length"] = str(len(answer.body))
    answer.headers.setdefault("Vary", "Accept-Encoding")
    return answer


def takes_gzip(request: Request) -> bool:
    """Whether the client says so."""
    return _weights(request.headers.get("accept-encoding", "")).get("gzip", 0.0) > 0


def _weights(header: str) -> dict[str, float]:
    return dict(map(weighed, header[:_LONGEST_ACCEPT].split(",")))
