"""What a site says about the use of what it serves, from all the places where it may say so."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from tamias.crawl.request.robots import RobotsCache
from tamias.crawl.store.worker_store import WorkerStore
from tamias.model.capture import Capture
from tamias.model.site import Signal
from tamias.model.url import authority
from tamias.permit.robots import Rules, parse
from tamias.permit.signals import signals_of
from tamias.permit.tdm import PLACE, TdmRule, tdm_rules

_REMEMBERED = 10_000
_NONE_SECONDS = 60.0
AI_TXT_PLACE = "/ai.txt"


class _UsageFiles(NamedTuple):
    tdm: tuple[TdmRule, ...] = ()
    ai: Rules | None = None


_NO_FILES = _UsageFiles()


class UsageSignals:
    """Gathers the signals in force for a capture: headers, metas, robots.txt, ai.txt, tdmrep.json."""

    def __init__(
        self,
        robots: RobotsCache,
        store: WorkerStore,
        *,
        probed: bool,
    ) -> None:
        """`probed`: whether tdmrep.json and ai.txt are looked for at all."""
        self._robots = robots
        self._store = store
        self._probed = probed
        self._files: dict[str, tuple[_UsageFiles, float]] = {}

    async def signals(self, capture: Capture, metas: Sequence[tuple[str, str]]) -> tuple[Signal, ...]:
        """All of them, with where each was said."""
        headers, url = capture.hops[-1].headers if capture.hops else (), capture.final_url
        told = self._robots.signals(url)
        files = await self._usage_files(url) if self._probed else _NO_FILES
        return signals_of(headers, metas, told, url=url, tdm=files.tdm, ai=files.ai)

    async def _usage_files(self, url: str) -> _UsageFiles:
        if not url.startswith(("http://", "https://")):
            return _NO_FILES
        place = authority(url)
        files, until = self._files.get(place, (_NO_FILES, 0.0))
        if until < time.monotonic():
            known = await self._store.read_contexts([place + PLACE, place + AI_TXT_PLACE], 0)
            files = _files(known.get(place + PLACE), known.get(place + AI_TXT_PLACE))
            if len(self._files) >= _REMEMBERED:
                self._files.clear()
            seconds = _NONE_SECONDS if files == _NO_FILES else 3600.0
            self._files[place] = files, time.monotonic() + seconds
        return files


def _files(tdm: bytes | None, ai: bytes | None) -> _UsageFiles:
    return _UsageFiles(tdm_rules(tdm or b""), parse(ai) if ai else None)
