"""The Community Solid Server, with its documents in files and open to everybody."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.node import NodeServer, free_url, node
from servers.packages import npm

PACKAGE = "@solid/community-server@7"
REPLACED = {
    "css:config/ldp/authorization/webacl.json": "css:config/ldp/authorization/allow-all.json",
    "css:config/util/auxiliary/acl.json": "css:config/util/auxiliary/empty.json",
}


@contextmanager
def start(folder: Path) -> Iterator[NodeServer]:
    """A server without documents: PUT makes them, and their containers."""
    modules = npm(PACKAGE) / "node_modules"
    settings = json.loads((modules / "@solid/community-server/config/file.json").read_bytes())
    settings["import"] = [REPLACED.get(part, part) for part in settings["import"]]
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    url, port = free_url()
    words = ["--config", "config.json", "--rootFilePath", "files", "--port", port, "--baseUrl", url]
    with node(modules / ".bin/community-solid-server", words, url, folder) as server:
        yield server
