"""rustac: a STAC API over files, in memory."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from servers.packages import pip
from servers.running import free_port, running


@contextmanager
def start(folder: Path, collection: dict[str, Any], items: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The address of a server with the items of one collection."""
    programs, address = pip("rustac==0.9.18"), f"127.0.0.1:{free_port()}"
    (folder / "collection.json").write_text(json.dumps(collection))
    (folder / "items.json").write_text(json.dumps({"type": "FeatureCollection", "features": items}))
    words = [programs / "rustac", "serve", "--addr", address, "collection.json", "items.json"]
    with running(words, f"http://{address}/", folder):
        yield f"http://{address}/"
