"""`python -m tamias.crawl.remote.worker`: the process of a worker without a database."""

from tamias.crawl.remote.store import remote_worker
from tamias.crawl.worker.process import run_process

if __name__ == "__main__":
    run_process(remote_worker)
