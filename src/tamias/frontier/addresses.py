"""The cap on hosts of one IP address that are lent at once, as far as visits have told the addresses."""

from collections import Counter
from typing import Any

from tamias.database.connect import Cursor
from tamias.frontier.queries import done_by, rows_of
from tamias.model.lease import Lease

_LATER_MS = 500
"""After so long, a host whose address had too many others lent is looked at again."""


def one_at_a_time(cursor: Cursor) -> None:
    """Until the end of the transaction nobody else who keeps the cap makes a lease."""
    rows_of(cursor, "one_lease_at_a_time", {})


def thinned(cursor: Cursor, buckets: int, now: int, leases: list[Lease], cap: int) -> list[Lease]:
    """Of the hosts just lent in one bucket, those that their addresses bear; the others wait a little."""
    if not leases:
        return []
    mine: dict[str, Any] = {
        "bucket": leases[0].bucket,
        "token": leases[0].token,
        "qid": [lease.qid for lease in leases],
        "now": now,
    }
    addresses: dict[int, str] = dict(rows_of(cursor, "find_addresses", mine))
    lent = _lent(cursor, buckets, {**mine, "address": sorted(set(addresses.values()))})
    crowded = set()
    for qid, address in addresses.items():
        lent[address] += 1
        if lent[address] > cap:
            crowded.add(qid)
    if crowded:
        done_by(cursor, "put_back", {**mine, "qid": sorted(crowded), "later": now + _LATER_MS})
    return [lease for lease in leases if lease.qid not in crowded]


def _lent(cursor: Cursor, buckets: int, asked: dict[str, Any]) -> Counter[str]:
    """How many hosts of addresses others have, in all buckets."""
    lent: Counter[str] = Counter()
    for bucket in range(buckets) if asked["address"] else ():
        lent.update(dict(rows_of(cursor, "count_lent", {**asked, "bucket": bucket})))
    return lent
