"""pygeoapi: OGC API Records over a TinyDB, which gives at most 50 records on a page."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from servers.packages import pip
from servers.running import free_port, running

MOST_RECORDS = 50
_CONFIG = """
server:
    bind: {{host: 127.0.0.1, port: {port}}}
    url: http://127.0.0.1:{port}
    mimetype: application/json; charset=UTF-8
    encoding: utf-8
    languages: [en-US]
    limits: {{default_items: 10, max_items: {most}}}
    map: {{url: "https://tile.example.org/{{z}}/{{x}}/{{y}}.png", attribution: x}}
logging: {{level: ERROR}}
metadata:
    identification:
        title: Town records
        description: Records
        keywords: [records]
        keywords_type: theme
        terms_of_service: https://creativecommons.org/licenses/by/4.0/
        url: https://example.org
    license: {{name: CC-BY 4.0, url: "https://creativecommons.org/licenses/by/4.0/"}}
    provider: {{name: Town, url: "https://example.org"}}
    contact: {{name: Desk, email: desk@example.org}}
resources:
    town:
        type: collection
        title: Town
        description: Records of the town
        keywords: [town]
        links: []
        extents: {{spatial: {{bbox: [-180, -90, 180, 90]}}}}
        providers:
            - {{type: record, name: TinyDBCatalogue, data: records.tinydb, id_field: id, time_field: updated}}
"""


@contextmanager
def start(folder: Path, records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The address of a server with these records."""
    programs = pip("pygeoapi==0.21.0", "tinydb", "gunicorn")
    port = free_port()
    table = {"_default": {str(number): record for number, record in enumerate(records, 1)}}
    (folder / "records.tinydb").write_text(json.dumps(table))
    (folder / "config.yml").write_text(_CONFIG.format(port=port, most=MOST_RECORDS))
    (folder / "start.sh").write_text(
        f"{programs}/pygeoapi openapi generate config.yml --output-file openapi.yml\n"
        f"exec {programs}/gunicorn --bind 127.0.0.1:{port} pygeoapi.flask_app:APP\n"
    )
    environment = {"PYGEOAPI_CONFIG": "config.yml", "PYGEOAPI_OPENAPI": "openapi.yml"}
    url = f"http://127.0.0.1:{port}/"
    with running(["sh", "start.sh"], url, folder, environment=environment):
        yield url
