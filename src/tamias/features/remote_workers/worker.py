"""`python -m tamias.features.remote_workers.worker`: the process of a worker without a database."""

from tamias.crawl.worker.worker import run_process
from tamias.features.remote_workers.store import remote_worker

if __name__ == "__main__":
    run_process(remote_worker)
