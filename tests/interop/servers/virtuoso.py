"""OpenLink Virtuoso from Debian's packages, with its usual cap of rows. Its default graph is the union."""

import configparser
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.packages import debian
from servers.running import Endpoint, free_port, running

PACKAGES = (
    "virtuoso-opensource-7-bin",
    "virtuoso-opensource-7",
    "libvirtodbc0",
    "libpcre3",
    "libxslt1.1",
    "libyajl2",
    "virtuoso-vad-conductor",
    "virtuoso-vsp-startpage",
)
CAP = 10_000
_AS_NQUADS = 512 + 255


class Virtuoso(Endpoint):
    """Is loaded through its SQL port."""

    nameless = "urn:default"

    def __init__(
        self, url: str, isql: Path, port: int, environment: dict[str, str], login: tuple[str, str] | None
    ) -> None:
        super().__init__(url, "", union=True)
        self.login = login
        self._isql = [str(isql), str(port), "dba", "dba", "VERBOSE=OFF", "BANNER=OFF", "PROMPT=OFF"]
        self._environment = environment

    def load(self, quads: Path) -> None:
        self.sql("RDF_GLOBAL_RESET ();")
        self.sql(f"DB.DBA.TTLP_MT (file_to_string_output ('{quads}'), '', '{self.nameless}', {_AS_NQUADS});")

    def sql(self, statement: str) -> str:
        """What the SQL prompt answers."""
        done = subprocess.run(
            [*self._isql, f"EXEC={statement}"],
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
            env=self._environment,
        )
        if "Error" in done.stderr:
            raise AssertionError(done.stderr)
        return done.stdout


@contextmanager
def start(folder: Path, *, password: bool = False) -> Iterator[Virtuoso]:
    """A database that holds only Virtuoso's own graphs; `password`: at the address that asks for one."""
    root = debian(*PACKAGES)
    port, sql_port = free_port(), free_port()
    _configure(root, folder, port, sql_port)
    libraries = root / "usr/lib/x86_64-linux-gnu", root / "lib/x86_64-linux-gnu"
    environment = {"LD_LIBRARY_PATH": ":".join(map(str, libraries)), "HOME": str(folder)}
    words = [root / "usr/bin/virtuoso-t", "-f", "-c", folder / "virtuoso.ini"]
    url = f"http://127.0.0.1:{port}/sparql"
    with running(words, url, folder, environment=environment):
        endpoint = f"{url}-auth" if password else url
        login = ("dba", "dba") if password else None
        yield Virtuoso(endpoint, root / "usr/bin/isql-vt", sql_port, environment, login)


def _configure(root: Path, folder: Path, port: int, sql_port: int) -> None:
    shipped = root / "usr/share/virtuoso-opensource-7/virtuoso.ini"
    settings = configparser.ConfigParser(strict=False, inline_comment_prefixes=(";",))
    settings.optionxform = str  # type: ignore[assignment]
    settings.read_string(
        shipped.read_text(encoding="utf-8").replace("/var/lib/virtuoso-opensource-7/db", str(folder))
    )
    settings["Parameters"].update(
        ServerPort=f"127.0.0.1:{sql_port}",
        DirsAllowed="/",
        VADInstallDir=f"{root}/usr/share/virtuoso-opensource-7/vad/",
    )
    settings["HTTPServer"].update(ServerPort=f"127.0.0.1:{port}", ServerRoot=str(folder))
    settings["SPARQL"] = {"ResultSetMaxRows": str(CAP)}
    with (folder / "virtuoso.ini").open("w", encoding="utf-8") as file:
        settings.write(file)
