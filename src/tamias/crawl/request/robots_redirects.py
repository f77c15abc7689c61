"""robots.txt that redirects into another queue: the file there is asked for in that queue's own turn.

It is an item of the frontier, as a JSON-LD context is. The host whose robots.txt led there is given back
meanwhile, and looks again a little later. The rules hold for the host that was asked first (RFC 9309).
"""

import msgspec

from tamias.crawl.plan.admit import Admission, first
from tamias.crawl.store.held_lease import HeldLease, NotNow
from tamias.crawl.store.worker_store import WorkerStore
from tamias.model.item import Item
from tamias.model.kind import ROBOTS, kind_key
from tamias.permit.availability import LONGEST_CACHED, MOST_REDIRECTS, meaning
from tamias.permit.robots import RobotsVerdict, Rules
from tamias.permit.store import KnownRobots

_FIRST_WAIT_MS = 500
_LONGEST_WAIT_MS = 30_000
_REMEMBERED = 10_000
_DAY_MS = LONGEST_CACHED * 1000
TOO_MANY = Rules(blanket=RobotsVerdict(True, meaning(302).reason))
"""What more redirects than are followed lead to."""


class RobotsRedirects:
    """Finds the rules at the end of redirects from queue to queue."""

    def __init__(self, store: WorkerStore, admission: Admission) -> None:
        self._store = store
        self._admission = admission
        self._waits: dict[str, int] = {}

    async def rules(self, known: KnownRobots, held: HeldLease) -> KnownRobots:
        """The rules that `known` leads to. Raises `NotNow` until somebody has asked for them."""
        rules = known.rules
        for _ in range(MOST_REDIRECTS):
            if rules.leads_to is None:
                return msgspec.structs.replace(known, rules=rules)
            rules = await self._rules_at(rules.leads_to, held)
        return msgspec.structs.replace(known, rules=rules if rules.leads_to is None else TOO_MANY)

    async def _rules_at(self, address: str, held: HeldLease) -> Rules:
        reason = self._admission.blocked(address, ROBOTS)
        if reason is not None:
            return Rules(
                blanket=RobotsVerdict(False, f"it redirects to {address}, which is not wanted: {reason}")
            )
        key, since = kind_key(address, ROBOTS), self._store.now() // _DAY_MS * _DAY_MS
        packed = (await self._store.read_contexts([key], since)).get(key)
        if packed is not None:
            self._waits.pop(address, None)
            return msgspec.msgpack.decode(packed, type=Rules)
        await self._store.put([self._item(address, held)])
        held.blocked_until = self._store.now() + self._wait(address)
        raise NotNow

    def _item(self, address: str, held: HeldLease) -> Item:
        """One for each day, so that the file is asked for again when its rules are too old."""
        item = first(self._admission, address, ROBOTS, held.tasks[0])
        return msgspec.structs.replace(item, key=f"{item.key} {self._store.now() // _DAY_MS}")

    def _wait(self, address: str) -> int:
        if len(self._waits) > _REMEMBERED:
            self._waits.clear()
        wait = self._waits.get(address, _FIRST_WAIT_MS)
        self._waits[address] = min(2 * wait, _LONGEST_WAIT_MS)
        return wait
