"""What a site says about the use of what it serves, from all the places where it may say so."""

import time
from collections.abc import Sequence

from tamias.crawl.request.robots import RobotsCache
from tamias.crawl.store.worker_store import WorkerStore
from tamias.model.capture import Capture
from tamias.model.site import Signal
from tamias.model.url import authority
from tamias.permit.signals import signals_of
from tamias.permit.tdm import PLACE, TdmRule, tdm_rules

_REMEMBERED = 10_000
_NONE_SECONDS = 60.0


class UsageSignals:
    """Gathers the signals that are in force for a capture: headers, metas, robots.txt, tdmrep.json."""

    def __init__(
        self,
        robots: RobotsCache,
        store: WorkerStore,
        *,
        probed: bool,
    ) -> None:
        """`probed`: whether tdmrep.json is looked for at all."""
        self._robots = robots
        self._store = store
        self._probed = probed
        self._tdm: dict[str, tuple[tuple[TdmRule, ...], float]] = {}

    async def signals(self, capture: Capture, metas: Sequence[tuple[str, str]]) -> tuple[Signal, ...]:
        """All of them, with where each was said."""
        headers = capture.hops[-1].headers if capture.hops else ()
        told = self._robots.signals(capture.final_url)
        tdm = await self._tdm_rules(capture.final_url) if self._probed else ()
        return signals_of(headers, metas, told, url=capture.final_url, tdm=tdm)

    async def _tdm_rules(self, url: str) -> tuple[TdmRule, ...]:
        if not url.startswith(("http://", "https://")):
            return ()
        place = authority(url)
        rules, until = self._tdm.get(place, ((), 0.0))
        if until < time.monotonic():
            address = place + PLACE
            known = await self._store.read_contexts([address], 0)
            rules = tdm_rules(known.get(address) or b"")
            if len(self._tdm) >= _REMEMBERED:
                self._tdm.clear()
            self._tdm[place] = rules, time.monotonic() + (3600.0 if rules else _NONE_SECONDS)
        return rules
