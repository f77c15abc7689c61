"""A portal of any size on the loopback address that answers as CKAN's action API does."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

MOST_ROWS = 1000

_STATUS = b'{"success": true, "result": {"site_title": "Ten thousand trees", "ckan_version": "2.10.4"}}'
_PAGE = b'{"help": "", "success": true, "result": {"count": %d, "sort": "id asc", "results": [%b]}}'
_RESOURCE = b"""{"id": "%(n)08d-r%(r)d", "name": "Trees of district %(n)d, part %(r)d",
"description": "One row for each tree, with its species, its height and the year of its planting.",
"url": "https://files.example.org/%(n)d/%(r)d.csv", "format": "CSV", "mimetype": "text/csv",
"size": %(n)d, "hash": "%(n)032x", "state": "active", "position": %(r)d,
"created": "2020-01-01T10:00:00.000000", "last_modified": "2024-01-01T10:00:00.000000"}"""
_PACKAGE = b"""{"id": "%(n)08d-0000-4000-8000-000000000000", "name": "trees-%(n)d",
"title": "Trees of district %(n)d", "notes": "The register of all trees that the parks department looks after
in district %(n)d. It is brought up to date once a year, and corrected when a tree is felled or planted.",
"url": "https://parks.example.org/trees/%(n)d", "version": null, "type": "dataset", "state": "active",
"private": false, "isopen": true, "license_id": "cc-by", "license_title": "CC BY 4.0",
"license_url": "https://creativecommons.org/licenses/by/4.0/", "author": "Survey office", "author_email": "",
"maintainer": "Data desk", "maintainer_email": "desk@example.org", "creator_user_id": "u-1",
"metadata_created": "2020-01-01T10:00:00.000000", "metadata_modified": "%(modified)b",
"num_resources": 3, "num_tags": 3, "organization": {"id": "org-%(o)d", "name": "parks-%(o)d",
"title": "Parks department %(o)d", "type": "organization", "description": "", "state": "active"},
"groups": [{"id": "g-1", "name": "nature", "title": "Nature", "display_name": "Nature"}],
"tags": [{"name": "tree", "display_name": "tree"}, {"name": "park", "display_name": "park"},
{"name": "survey", "display_name": "survey"}], "extras": [{"key": "frequency", "value": "annual"},
{"key": "language", "value": "[\\"en\\"]"}, {"key": "spatial", "value": "{\\"type\\": \\"Polygon\\",
\\"coordinates\\": [[[16.1, 48.1], [16.5, 48.1], [16.5, 48.3], [16.1, 48.1]]]}"},
{"key": "temporal_start", "value": "2019-01-01"}, {"key": "temporal_end", "value": "2019-12-31"}],
"resources": [%(resources)b], "relationships_as_object": []}""".replace(b"\n", b" ")


def package(number: int) -> bytes:
    """One dataset as CKAN writes it, about 3 KB."""
    resources = b", ".join(_RESOURCE % {b"n": number, b"r": part} for part in range(3))
    modified = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    told = {b"n": number, b"o": number % 50, b"resources": resources}
    return _PACKAGE % (told | {b"modified": modified.strftime("%Y-%m-%dT%H:%M:%S.000000").encode()})


def portal(datasets: int) -> contextlib.AbstractContextManager[str]:
    """The address of a portal with so many datasets, while the block lasts."""
    return serve_portal(lambda address: ckan_answer(address, datasets), "application/json", [])


@contextlib.contextmanager
def serve_portal(answer: Callable[[str], bytes], media_type: str, log: list[str]) -> Iterator[str]:
    """The address of a server that answers so, while the block lasts; `log` gets the paths asked for."""

    class PortalHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 20

        def do_GET(self) -> None:
            log.append(self.path)
            body = answer(self.path)
            self.send_response(200)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), PortalHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ckan_answer(address: str, datasets: int) -> bytes:
    """What CKAN says at an address: its status, or a page of its datasets."""
    split = urlsplit(address)
    if not split.path.endswith("/package_search"):
        return _STATUS
    query = parse_qs(split.query)
    start, rows = int(query["start"][0]), min(MOST_ROWS, int(query["rows"][0]))
    numbers = range(datasets)[start : start + rows]
    if query["sort"] == ["metadata_modified desc"]:
        numbers = range(datasets)[::-1][start : start + rows]
    return _PAGE % (datasets, b", ".join(map(package, numbers)))
