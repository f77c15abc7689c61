"""Apache Jena Fuseki, in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.packages import maven, program
from servers.running import Endpoint, free_port, running

JAR = "org.apache.jena:jena-fuseki-server:4.10.0:jar"


@contextmanager
def start(folder: Path) -> Iterator[Endpoint]:
    """An empty dataset."""
    port = free_port()
    words = [program("java"), "-jar", maven(JAR), f"--port={port}", "--localhost", "--update", "--mem", "/ds"]
    with running(words, f"http://127.0.0.1:{port}/$/ping", folder):
        yield Endpoint(f"http://127.0.0.1:{port}/ds/sparql", f"http://127.0.0.1:{port}/ds/data")
