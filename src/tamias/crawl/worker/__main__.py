"""`python -m tamias.crawl.worker`: the process of a worker on a database, started by the supervisor only."""

import gc


def _run() -> None:
    gc.disable()  # no module is garbage, and to look for some is a sixth of the imports
    from tamias.crawl.worker.worker import database_worker, run_process

    run_process(database_worker)


_run()
