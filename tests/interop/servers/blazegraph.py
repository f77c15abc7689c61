"""Blazegraph in memory, with quads. Its default graph is the union of all, and gives no statement twice."""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.packages import maven, program
from servers.running import Endpoint, free_port, running

JAR = "com.blazegraph:blazegraph-jar:2.1.4:jar"
SERVER = "com.bigdata.rdf.sail.webapp.NanoSparqlServer"
STORE = "com.bigdata.rdf.store.AbstractTripleStore"
SETTINGS = f"""
com.bigdata.journal.AbstractJournal.bufferMode=MemStore
com.bigdata.rdf.sail.truthMaintenance=false
{STORE}.quads=true
{STORE}.statementIdentifiers=false
{STORE}.axiomsClass=com.bigdata.rdf.axioms.NoAxioms
{STORE}.textIndex=false
{STORE}.justify=false
"""


class Blazegraph(Endpoint):
    """Takes N-Quads by POST, by the format's older rules: ASCII, and everything else escaped."""

    nameless = "http://www.bigdata.com/rdf#nullGraph"

    def load(self, quads: Path) -> None:
        text = "".join(map(_escaped, quads.read_text(encoding="utf-8")))
        request = urllib.request.Request(
            self.url, data=text.encode(), headers={"Content-Type": "text/x-nquads"}
        )
        urllib.request.urlopen(request, timeout=300).close()


@contextmanager
def start(folder: Path) -> Iterator[Endpoint]:
    """An empty store."""
    port, jar = str(free_port()), maven(JAR)
    (folder / "store.properties").write_text(SETTINGS, encoding="utf-8")
    # Java 9 and later do not find the pages in the jar without these addresses.
    pages = [f"-D{name}=jar:file:{jar}!/war" for name in ("jetty.home", "jetty.resourceBase")]
    network = ["-Djetty.host=127.0.0.1", f"-Djetty.port={port}"]
    words = [
        program("java"),
        "-Xmx2g",
        "-Dfile.encoding=UTF-8",
        *pages,
        *network,
        "-cp",
        jar,
        SERVER,
        port,
        "kb",
        "store.properties",
    ]
    url = f"http://127.0.0.1:{port}/blazegraph/namespace/kb/sparql"
    with running(words, url, folder, unless=404):  # until the store is there
        yield Blazegraph(url, "", union=True)


def _escaped(sign: str) -> str:
    """A character in ASCII; its parser takes two halves of a surrogate pair, but not `\\U`."""
    units = sign.encode("utf-16-be").hex()
    return sign if sign.isascii() else "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
