"""The hostile web by hand: all attacks on one loopback port, for curl or anybody's crawler."""

import asyncio
from collections.abc import Callable

from tests.hostile.web.attacks import ATTACKS
from tests.hostile.web.trial import hosts_of, prepare
from tests.hostile.web.wire import VirtualHosts

ADDRESS = "127.0.0.1"


def serve(port: int, out: Callable[[str], None]) -> None:
    """Until interrupted. The hosts are told apart by their names."""
    for attack in ATTACKS:
        for url in attack.seed_urls:
            out(f"{attack.number:4} {url}")
    out(f"serving; try: curl --connect-to ::{ADDRESS}:{port} {ATTACKS[0].seed_urls[0]}")
    asyncio.run(_serve(port))


async def _serve(port: int) -> None:
    sites = hosts_of(ATTACKS)
    prepare(sites)
    web = VirtualHosts(sites)
    await web.listen(ADDRESS, port)
    await asyncio.Event().wait()
