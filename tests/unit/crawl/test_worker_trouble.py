"""The first trouble of a worker is the one that is told: what follows comes of it."""

import asyncio
from types import SimpleNamespace

from tamias.archive.blobs.packs import PackError, StoreUnavailable
from tamias.crawl.worker.worker import Worker


def test_what_follows_from_a_trouble_does_not_hide_it():
    troubles = iter([StoreUnavailable("the store cannot be reached"), PackError("a pack is broken")])

    async def work(_held):
        raise next(troubles)

    worker = SimpleNamespace(_visitor=SimpleNamespace(work=work), _trouble=None)
    for _ in range(2):
        asyncio.run(Worker._work(worker, None))
    assert isinstance(worker._trouble, StoreUnavailable)
