"""`python -m tamias.crawl.worker`: the process of a worker on a database, started by the supervisor only."""

from tamias.crawl.worker.process import run_process
from tamias.crawl.worker.wiring import database_worker

run_process(database_worker)
