"""`python -m tamias.crawl.remote.worker`: the process of a worker without a database."""

from tamias.crawl.process import run_process
from tamias.crawl.remote.workplace import far_worker

if __name__ == "__main__":
    run_process(far_worker)
