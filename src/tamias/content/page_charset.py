"""The encoding that a page declares itself: the prescan of the HTML standard (section 13.2.3.2). Pure."""

import re

from tamias.content.charsets import believed_charset

PRESCAN = 1024
"""Bytes in which a declaration counts."""

_STEP = re.compile(rb"<!--|<(meta)(?=[\s/])|</?[a-z][^\s/>]*|<[!/?]", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""[\s/]*([^\s/>][^\s/>=]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>"'][^\s>]*)?)?""")
_IN_CONTENT = re.compile(rb"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"'][^\s;]*))""", re.IGNORECASE)
_XML = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]*)["']""")


def page_charset(head: bytes) -> str | None:
    """The encoding that a `<meta>` names, or else an XML declaration; None where neither does."""
    head = head[:PRESCAN]
    declared = _XML.match(head)
    named = _in_metas(head) if b"charset" in head.lower() else None
    return named or (_ascii_compatible(declared[1]) if declared else None)


def _in_metas(head: bytes) -> str | None:
    at = 0
    while step := _STEP.search(head, at):
        at = step.end()
        if step[0] == b"<!--":
            at = head.find(b"-->", step.start() + 2)
        elif step[0] in (b"<!", b"<?", b"</"):
            at = head.find(b">", at)
        else:
            attributes, at = _attributes(head, at)
            charset = _of_meta(attributes) if step[1] else None
            if charset is not None:
                return charset
        if at < 0:
            return None
    return None


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """The attributes of a tag, the first of each name, and where they end."""
    found: dict[bytes, bytes] = {}
    while (attribute := _ATTRIBUTE.match(head, at)) and attribute.end() > at:
        at = attribute.end()
        value = attribute[2] or b""
        found.setdefault(attribute[1].lower(), value[1:-1] if value[:1] in (b'"', b"'") else value)
    return found, at


def _of_meta(attributes: dict[bytes, bytes]) -> str | None:
    if b"charset" in attributes:
        return _ascii_compatible(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    named = _IN_CONTENT.search(attributes.get(b"content", b""))
    return _ascii_compatible(named[1] or named[2] or named[3] or b"") if named else None


def _ascii_compatible(label: bytes) -> str | None:
    """What is read as ASCII until here is no UTF-16, whatever it says."""
    name = believed_charset(label.decode("ascii", "replace").strip())
    return "utf-8" if name is not None and name.startswith("utf-16") else name
