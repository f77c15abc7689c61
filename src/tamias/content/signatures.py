"""What a file is by its first bytes, where they say it beyond doubt: compression, archives, binaries."""

import tarfile

OFFICE = "application/vnd.openxmlformats-officedocument."
SHEET = OFFICE + "spreadsheetml.sheet"

SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"\x00\x00\x01\x00", "image/vnd.microsoft.icon"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"$HDT", "application/vnd.hdt"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"ARROW1", "application/vnd.apache.arrow.file"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"Obj\x01", "application/avro"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\x7fELF", "application/x-executable"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"{\\rtf", "application/rtf"),
)
_BY_FIRST_BYTE: dict[int, list[tuple[bytes, str]]] = {}
for _magic, _type in SIGNATURES:
    _BY_FIRST_BYTE.setdefault(_magic[0], []).append((_magic, _type))

_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")
_OFFICE_PARTS = ((b"xl/", SHEET), (b"word/", OFFICE + "wordprocessingml.document"))
_OFFICE_TYPES = (SHEET, OFFICE + "wordprocessingml.document", OFFICE + "presentationml.presentation")


def signed_type(head: bytes, claims: tuple[str, ...]) -> str | None:
    """The type that the first bytes prove; claims only choose between kinds of one container."""
    for magic, media_type in _BY_FIRST_BYTE.get(head[0] if head else -1, ()):
        if head.startswith(magic):
            return _refined(head, media_type, claims)
    if head[257:262] == b"ustar" or ("application/x-tar" in claims and _is_old_tar(head)):
        return "application/x-tar"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:8] == b"ftyp":
        return "video/mp4"
    if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return "application/zstd"
    return None


def _refined(head: bytes, media_type: str, claims: tuple[str, ...]) -> str | None:
    if media_type == "application/x-bzip2":
        return media_type if head[4:10] in _BZIP2_BLOCKS else None
    if media_type == "application/zip":
        return _zip_kind(head, claims)
    if media_type == "application/x-ole-storage":
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
        return seen or claimed or "application/zip"
    return "application/zip"


def _is_old_tar(head: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(head[:512], "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True
