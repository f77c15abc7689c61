"""Count the responses of each host that were walls."""

from tamias.archive.moments import rfc3339
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.site import HostNote

_SQL = statements("tamias.features.walls", "walls.sql")


def host_notes(session: Session) -> list[HostNote]:
    """Return a note about each host that answered with walls, the most frequent first."""
    return [
        HostNote(
            host=host,
            count=count,
            text=f"{count:,} responses were walls ({names}), last on {rfc3339(last)[:10]}",
        )
        for host, names, count, last in session.fetch_all(_SQL["count_walls"])
    ]
