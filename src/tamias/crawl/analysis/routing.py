"""The choice between reading a document in the worker itself and in a sandbox.

Almost everything is small and harmless, also when it is packed: waiting for a sandbox would let a few bombs
hold up all of it. So a small packed body is unpacked on the spot, within the size of a small document.
"""

from tamias.content.containers.documents import documents
from tamias.content.containers.limits import OpenLimits
from tamias.content.containers.streams import HEAD
from tamias.content.formats import FORMATS, SEVEN_ZIP, bare_type
from tamias.content.sniff import signed_type
from tamias.crawl.analysis.extractor import PACKED_TYPES, SMALL_BODY, is_small, start_of
from tamias.model.capture import Body, Capture
from tamias.model.document import Document, LimitExceeded

NATIVE_TYPES = frozenset(name for name, row in FORMATS.items() if row.sandboxed)
PROLOG = 64 * 1024
AT_ONCE = OpenLimits(
    max_bytes=SMALL_BODY, max_ratio=1, ratio_after=SMALL_BODY, max_members=20, max_layers=2, max_archives=1
)
"""What is unpacked in the worker: no more than a plain document may have that is read there."""
_SLOW_TO_OPEN = frozenset({SEVEN_ZIP})


def is_read_at_once(capture: Capture, body: Body) -> bool:
    """Tell if a document is small and harmless enough for the worker's own thread."""
    if is_small(body) and not _claims_to_be_packed(capture):
        return not is_dangerous(body)
    data = body.data
    if data is None or len(data) > SMALL_BODY or signed_type(data[:HEAD], ()) in _SLOW_TO_OPEN:
        return False
    try:
        parts = documents(body, url=capture.final_url, declared_type=capture.declared_type, limits=AT_ONCE)
        return all(_is_harmless(part) for part in parts if isinstance(part, Document))
    except LimitExceeded:
        return False


def is_plain(body: Body) -> bool:
    """Tell if a body can be read without unpacking it."""
    return signed_type(start_of(body, HEAD), ()) not in PACKED_TYPES


def _claims_to_be_packed(capture: Capture) -> bool:
    """Brotli and old tar files are known by their names and types only."""
    path = capture.final_url.partition("?")[0]
    return path.endswith((".br", ".tar")) or bare_type(capture.declared_type) in PACKED_TYPES


def is_dangerous(body: Body) -> bool:
    """Tell if even a small body goes to the sandbox because its kind is known to kill parsers."""
    return _is_deadly((body.data or b"")[:PROLOG])


def _is_harmless(document: Document) -> bool:
    start = document.stream.read(PROLOG)
    while document.stream.read(PROLOG):
        continue
    return not _is_deadly(start)


def _is_deadly(start: bytes) -> bool:
    return b"<!ENTITY" in start or signed_type(start[:HEAD], ()) in NATIVE_TYPES
