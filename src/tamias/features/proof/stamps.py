"""Trees with their timestamps, in the database."""

import logging
from hashlib import sha256

import msgspec

from tamias.archive.blobs import BlobReader
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.proof.settings import ProofSettings
from tamias.features.proof.timestamps import NoTimestamp, fetch_timestamp
from tamias.features.proof.tree import root_of
from tamias.model.errors import UsageError
from tamias.settings import Settings

_SQL = statements("tamias.features.proof", "proof.sql")
_DAY_MS = 86_400_000
_DAYS = 7
_DIGEST = 32
_log = logging.getLogger(__name__)


class StampedTree(msgspec.Struct, frozen=True):
    """The digests of versions of a day, and a timestamp of their root."""

    leaves: list[bytes]
    token: bytes
    stamped_at: int
    tsa: str


def stamp_days(session: Session, _blobs: BlobReader, settings: Settings) -> None:
    """Stamp each of the last seven days that is over and has no timestamp."""
    if not settings.of_feature("proof", ProofSettings).tsa:
        return
    today = session.now() // _DAY_MS
    stamped = {day for (day,) in session.fetch_all(_SQL["stamped_days"], {"first": today - _DAYS})}
    for day in {*range(today - _DAYS, today)} - stamped:
        try:
            _stamp(session, settings, day, [])
        except NoTimestamp as error:
            _log.warning("day %d has no timestamp yet: %s", day, error)
            return


def stamped_tree(session: Session, settings: Settings, text: str, captured_at: int) -> StampedTree:
    """Return the earliest stamped tree with a version; where there is none, stamp what its day has unstamped.

    Raises `NoTimestamp`, and `UsageError` where no timestamp server is set.
    """
    leaf, day = sha256(text.encode()).digest(), captured_at // _DAY_MS
    trees = [_tree(*row) for row in session.fetch_all(_SQL["trees_of_day"], {"day": day})]
    found = next((tree for tree in trees if leaf in tree.leaves), None) or _stamp(
        session, settings, day, trees
    )
    if found is None or leaf not in found.leaves:
        raise UsageError("only versions of watched resources have proofs, not records of catalogues")
    return found


def _stamp(session: Session, settings: Settings, day: int, known: list[StampedTree]) -> StampedTree | None:
    """Stamp the versions of a day that no tree has; None where there are none."""
    tsa = settings.of_feature("proof", ProofSettings).tsa
    if not tsa:
        raise UsageError("the version has no timestamp; set proof.tsa to the address of a timestamp server")
    leaves = {leaf for (leaf,) in session.fetch_all(_SQL["leaves_of_day"], {"day": day})}
    ordered = sorted(leaves.difference(*(tree.leaves for tree in known)))
    if not ordered:
        return None
    root = root_of(ordered)
    token, stamped_at = fetch_timestamp(tsa, root, allow_private=settings.permit.allow_private)
    row = {"root": root, "day": day, "leaves": b"".join(ordered), "token": token, "stamped_at": stamped_at}
    session.execute(_SQL["add_tree"], {**row, "tsa": tsa})
    return StampedTree(ordered, token, stamped_at, tsa)


def _tree(leaves: bytes, token: bytes, stamped_at: int, tsa: str) -> StampedTree:
    found = [bytes(leaves[place : place + _DIGEST]) for place in range(0, len(leaves), _DIGEST)]
    return StampedTree(found, bytes(token), stamped_at, tsa)
