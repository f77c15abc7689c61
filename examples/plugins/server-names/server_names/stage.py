"""The stage that notes the software of a server, and the hook that counts it with the visits."""

from collections import Counter

import msgspec

from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.store.visit import CommitBatch, CommitHook, Visit
from tamias.crawl.visit.stages import Place, StageContext
from tamias.database.columns import storable
from tamias.database.connect import Cursor
from tamias.database.sql import statements

_SQL = statements("server_names", "server_names.sql")
_LONGEST = 200


class ServerNamed(msgspec.Struct, frozen=True):
    """What a stage leaves for the hook: a plain record."""

    host: str
    name: str


class NoteServer:
    """Note the header `Server` of a response."""

    place: Place = "response"

    async def run(self, visit: Visit) -> bool:
        """Add a record to the visit; it goes on in any case."""
        hops = visit.capture.hops
        name = hops[-1].header("server") if hops else None
        if name:
            visit.extras.append(ServerNamed(visit.held.lease.host, storable(name[:_LONGEST])))
        return True


class CountServers(CommitHook):
    """Count the records in the transaction of their visits: a killed worker counts nothing twice."""

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Add the counts of a commit, in one order so that workers do not wait for each other in a circle."""
        counts = Counter(named for _, named in batch.extras(ServerNamed))
        for named in sorted(counts, key=lambda each: (each.host, each.name)):
            row = {"host": named.host, "name": named.name, "responses": counts[named]}
            cursor.execute(_SQL["count"].text, row)


def note_server(_context: StageContext) -> NoteServer:
    """Return the stage; None would leave it out."""
    return NoteServer()


def count_servers(_context: CommitContext) -> CountServers:
    """Return the hook; None would leave it out."""
    return CountServers()
