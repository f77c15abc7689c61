"""The fingerprint of a content: the same for bodies that differ in bytes only, such as in order or times."""

from tamias.content.canonical.content_digest import ContentDigest

SCHEME = "07"
"""The rules by which contents were compared when a fingerprint was made; earlier ones have no such mark."""
_LENGTH = len(SCHEME) + 64


def fingerprint_of(content: ContentDigest | None) -> str | None:
    """Return the fingerprint as it is stored; None when only bytes can be compared."""
    return None if content is None else SCHEME + content.digest.hex()


def is_comparable(fingerprint: str | None) -> bool:
    """Return whether a stored fingerprint was made by the present rules."""
    return fingerprint is not None and len(fingerprint) == _LENGTH and fingerprint.startswith(SCHEME)
