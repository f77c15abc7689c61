"""F7: a worker is parted from the database, and comes back after its leases have ended."""

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine
from benchmarks.faults.takeover import ELDER, taken_over, words
from benchmarks.webs.proxy import Proxy, to_socket
from benchmarks.webs.server import in_thread
from tamias.database.connect import Database


def run(setup: ExperimentSetup) -> Result:
    """Nothing passes between the first worker and the database; a second one works beside it."""
    with (
        closing(Database(setup.folder / "data")) as database,
        in_thread() as do,
    ):
        assert database.embedded is not None
        place = conninfo_to_dict(database.embedded.address())
        proxy = Proxy(["127.0.0.1"], to_socket(f"{place['host']}/.s.PGSQL.5432"))
        do(proxy.open())
        through = {"host": "127.0.0.1", "port": proxy.port, "sslmode": "disable"}
        near, far = (f"postgresql:///?{urlencode(each)}" for each in (place, {**place, **through}))

        def start(machine: Machine, seeds: list[str]) -> subprocess.Popen[bytes]:
            return machine.start("crawl", *words(ELDER), "--db", far, *seeds)

        @contextmanager
        def away(_machine: Machine, _crawl: subprocess.Popen[bytes]) -> Iterator[None]:
            do(proxy.part())
            try:
                yield
            finally:
                do(proxy.heal())

        try:
            return taken_over(setup, start, away, {"DB": near})
        finally:
            do(proxy.close())
