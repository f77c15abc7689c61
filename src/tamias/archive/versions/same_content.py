"""The same content under several URLs: which versions have it, and how much is stored once because of it."""

from collections.abc import Sequence

import msgspec

from tamias.archive.moments import rfc3339
from tamias.database.columns import Digests, Texts
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.resource import Version

_SQL = statements("tamias.archive.versions", "same_content.sql")
MOST = 20


class SameContent(msgspec.Struct, frozen=True, kw_only=True):
    """A version of another resource that has the same content: the first of that resource."""

    id: str
    number: int
    url: str
    captured_at: str
    same_bytes: bool
    """Whether also the bytes are the same; else only rows, statements or values are."""


class SharedContent(msgspec.Struct, frozen=True):
    """The share of the archive that several resources have."""

    versions: int
    """Versions whose content another resource has as well."""
    same_bytes: int
    """Those whose bytes another resource has as well."""
    bodies: int
    """The different bodies of those."""
    bytes_saved: int
    """Bytes of versions that were stored before, under the same URL or another, and not again."""


def same_content(
    session: Session, versions: Sequence[Version], most: int = MOST
) -> dict[str, tuple[SameContent, ...]]:
    """Return, by version id, versions of other resources with the same content, the earliest first.

    So many for each version; versions whose content nobody else has are left out.
    """
    values = {
        "resource": Texts(version.resource for version in versions),
        "sha256": Digests(version.sha256 for version in versions),
        "fingerprint": Digests(version.fingerprint for version in versions),
        "most": most,
    }
    found: dict[str, tuple[SameContent, ...]] = {}
    for place, resource, number, url, captured_at, same_bytes in session.fetch_all(
        _SQL["same_content"], values
    ):
        name = versions[place - 1].id
        other = SameContent(
            id=f"{resource}_{number}",
            number=number,
            url=url,
            captured_at=rfc3339(captured_at),
            same_bytes=same_bytes,
        )
        found[name] = (*found.get(name, ()), other)
    return found


def earlier_content(session: Session, versions: Sequence[Version]) -> dict[str, SameContent]:
    """Return, by version id, the first version of another resource that had the content earlier."""
    when = {version.id: rfc3339(version.captured_at) for version in versions}
    return {
        name: first
        for name, (first, *_) in same_content(session, versions, 1).items()
        if (first.captured_at, first.id) < (when[name], name)
    }


def shared_content(session: Session, seconds: float) -> SharedContent | None:
    """Return how much of all is there several times; None if the database would need longer to tell."""
    try:
        row = next(session.rows(_SQL["shared"].text, {}, seconds=seconds))
    except TimeoutError:
        return None
    return SharedContent(*row)
