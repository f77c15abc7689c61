"""What a file is by its first bytes, where they say it beyond doubt: compression, archives, binaries."""

from tamias.content.formats import BY_FIRST_BYTE, BZIP2, OFFICE, OLE, SHEET, TAR, ZIP, ZSTD

_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")
_OFFICE_PARTS = ((b"xl/", SHEET), (b"word/", OFFICE + "wordprocessingml.document"))
_OFFICE_TYPES = (SHEET, OFFICE + "wordprocessingml.document", OFFICE + "presentationml.presentation")


def signed_type(head: bytes, claims: tuple[str, ...]) -> str | None:
    """The type that the first bytes prove; claims only choose between kinds of one container."""
    for magic, media_type in BY_FIRST_BYTE.get(head[0] if head else -1, ()):
        if head.startswith(magic):
            return _refined(head, media_type, claims)
    if head[257:262] == b"ustar" or (TAR in claims and _is_old_tar(head)):
        return TAR
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:8] == b"ftyp":
        return "video/mp4"
    if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return ZSTD
    return None


def _refined(head: bytes, media_type: str, claims: tuple[str, ...]) -> str | None:
    if media_type == BZIP2:
        return media_type if head[4:10] in _BZIP2_BLOCKS else None
    if media_type == ZIP:
        return _zip_kind(head, claims)
    if media_type == OLE:
        return next((claim for claim in claims if claim.startswith("application/vnd.ms-")), media_type)
    return media_type


def _zip_kind(head: bytes, claims: tuple[str, ...]) -> str:
    """Office files and e-books are zip archives that are read as one thing."""
    first_name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    if first_name == b"mimetype":
        return head[38 : 38 + int.from_bytes(head[18:22], "little")][:100].decode("ascii", "replace").strip()
    if first_name == b"[Content_Types].xml" or first_name.startswith(
        (b"_rels/", b"docProps/", b"xl/", b"word/")
    ):
        claimed = next((claim for claim in claims if claim in _OFFICE_TYPES), None)
        seen = next((media_type for part, media_type in _OFFICE_PARTS if part in head), None)
        return seen or claimed or ZIP
    return ZIP


def _is_old_tar(head: bytes) -> bool:
    import tarfile

    try:
        tarfile.TarInfo.frombuf(head[:512], "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True
