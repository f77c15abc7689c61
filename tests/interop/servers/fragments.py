"""The Triple Pattern Fragments server, over one file in memory."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.node import NodeServer, free_url, node
from servers.packages import npm

PACKAGES = "@ldf/server@3", "@ldf/datasource-n3@3"
CONTEXT = "https://linkedsoftwaredependencies.org/bundles/npm/@ldf/server/^3.0.0/components/context.jsonld"


@contextmanager
def start(folder: Path, *, triples: Path) -> Iterator[NodeServer]:
    """The N-Triples of a file as the dataset `data`, 100 on a page."""
    modules = npm(*PACKAGES) / "node_modules"
    url, port = free_url()
    settings = {
        "@context": CONTEXT,
        "@id": "urn:ldf-server:my",
        "import": "preset-qpf:config-defaults.json",
        "title": "Fragments",
        "baseURL": url,
        "datasources": [
            {
                "@id": "urn:ldf-server:data",
                "@type": "NTriplesDatasource",
                "datasourceTitle": "data",
                "datasourcePath": "data",
                "file": str(triples),
            }
        ],
    }
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with node(modules / ".bin/ldf-server", ["config.json", port, "1"], url, folder) as server:
        yield server
