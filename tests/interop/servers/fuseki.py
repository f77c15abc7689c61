"""Apache Jena Fuseki, in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.packages import maven, program
from servers.running import Endpoint, free_port, running

JAR = "org.apache.jena:jena-fuseki-server:4.10.0:jar"


class UnionOnly(Endpoint):
    """An endpoint whose default graph is the union of the named graphs, without the statements of none."""

    hides_default = True


@contextmanager
def start(folder: Path, *, union: bool = False) -> Iterator[Endpoint]:
    """An empty dataset; `union` makes its default graph the union of the named graphs."""
    port = free_port()
    form = ["--mem"]
    if union:
        form = ["--set", "tdb2:unionDefaultGraph=true", "--tdb2", "--loc", str(folder / "data")]
        (folder / "data").mkdir()
    words = [program("java"), "-jar", maven(JAR), f"--port={port}", "--localhost", "--update", *form, "/ds"]
    with running(words, f"http://127.0.0.1:{port}/$/ping", folder):
        made = UnionOnly if union else Endpoint
        yield made(f"http://127.0.0.1:{port}/ds/sparql", f"http://127.0.0.1:{port}/ds/data", union=union)
