"""Responses at their places in WARC files, checked by the digest that the index has of them."""

import hashlib
from collections.abc import Callable
from typing import BinaryIO

from tamias.archive.blobs import BlobDamaged
from tamias.features.warc.index import WarcExtent
from tamias.features.warc.messages import BadMessage, MessageBody, MessageHead, read_head
from tamias.features.warc.records import DamagedRecord, warc_blocks


def read_response(
    file: BinaryIO, extent: WarcExtent, write: Callable[[bytes], object], *, with_body: bool = True
) -> MessageHead:
    """Gives the body to `write`, piece by piece; returns the head. Raises `BlobDamaged`, at the end too."""
    wanted, digest = extent.sha256 or "", hashlib.sha256()
    place = f"the record at byte {extent.position} of {extent.file}"
    try:
        block = next(warc_blocks(file, lambda _offset, _problem: None, extent.position), None)
        if block is None:
            raise BlobDamaged(wanted, f"there is no record at byte {extent.position} of {extent.file}")
        head = read_head(block)
        for piece in MessageBody(block, head).pieces() if with_body else ():
            digest.update(piece)
            write(piece)
    except (DamagedRecord, BadMessage) as error:
        raise BlobDamaged(wanted, f"{place}: {error}") from None
    if with_body and digest.hexdigest() != wanted:
        raise BlobDamaged(wanted, f"{place} holds another")
    return head
