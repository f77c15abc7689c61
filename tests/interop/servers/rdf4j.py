"""Eclipse RDF4J's server with a memory store, in Jetty. Its default graph is the union of all."""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.packages import maven, program
from servers.running import Endpoint, free_port, running

WAR = "org.eclipse.rdf4j:rdf4j-http-server:3.7.7:war"
JETTY = "org.eclipse.jetty:jetty-runner:9.4.54.v20240208:jar"
REPOSITORY = """
@prefix rep: <http://www.openrdf.org/config/repository#> .
@prefix sr: <http://www.openrdf.org/config/repository/sail#> .
@prefix sail: <http://www.openrdf.org/config/sail#> .
[] a rep:Repository ; rep:repositoryID "r" ;
  rep:repositoryImpl [ rep:repositoryType "openrdf:SailRepository" ;
    sr:sailImpl [ sail:sailType "openrdf:MemoryStore" ] ] .
"""


@contextmanager
def start(folder: Path) -> Iterator[Endpoint]:
    """An empty repository."""
    port = free_port()
    server = f"http://127.0.0.1:{port}/rdf4j-server"
    words = [
        program("java"),
        f"-Dorg.eclipse.rdf4j.appdata.basedir={folder / 'data'}",
        "--add-opens",
        "java.base/java.lang=ALL-UNNAMED",
        "-jar",
        maven(JETTY),
        *("--host", "127.0.0.1", "--port", str(port), "--path", "/rdf4j-server"),
        maven(WAR),
    ]
    with running(words, f"{server}/protocol", folder, unless=404):  # until its war is open
        made = urllib.request.Request(
            f"{server}/repositories/r",
            data=REPOSITORY.encode(),
            headers={"Content-Type": "text/turtle"},
            method="PUT",
        )
        urllib.request.urlopen(made, timeout=60).close()
        yield Endpoint(f"{server}/repositories/r", f"{server}/repositories/r/statements", union=True)
