"""IRIs in markup: relative references made absolute by RFC 3986, absolute ones left as they stand."""

import re

from pyoxigraph import NamedNode

_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NEVER_IN_AN_IRI = re.compile(
    r'[\x00-\x20<>"{}|\\^`\x7f-\x9f\ue000-\uf8ff\ufdd0-\ufdef\ufff0-\uffff]|%(?![0-9A-Fa-f]{2})'
)


def is_absolute(reference: str) -> bool:
    """Return whether it begins with a scheme.

    >>> is_absolute("urn:a"), is_absolute("a/b:c")
    (True, False)
    """
    return _SCHEME.match(reference) is not None


def resolved(reference: str, base: str) -> str:
    """The reference as seen from `base`; its characters are kept.

    >>> resolved("../é?#", "http://example.org/a/b/c#d")
    'http://example.org/a/é?#'
    """
    if is_absolute(reference):
        return reference
    _, authority, path, query, fragment = _split(reference)
    scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is None:
        authority = base_authority
        if path:
            path = _without_dots(path if path.startswith("/") else _merged(base_authority, base_path, path))
        else:
            path, query = base_path, base_query if query is None else query
    else:
        path = _without_dots(path)
    host = "" if authority is None else f"//{authority}"
    return f"{scheme or ''}:{host}{path}{query or ''}{fragment or ''}"


def named_node(iri: str) -> NamedNode | None:
    """The node; what no IRI may hold is escaped, as browsers do; None for what is not an IRI even then.

    >>> named_node("http://example.org/a b")
    <NamedNode value=http://example.org/a%20b>
    """
    try:
        return NamedNode(iri)
    except ValueError:
        pass
    try:
        return NamedNode(_NEVER_IN_AN_IRI.sub(_escaped, iri))
    except ValueError:
        return None


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    found = _PARTS.match(iri)
    assert found is not None
    return found[1], found[2], found[3], found[4], found[5]


def _merged(base_authority: str | None, base_path: str, path: str) -> str:
    if base_authority is not None and not base_path:
        return f"/{path}"
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    if "/." not in path and not path.startswith("."):
        return path
    segments_left: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(segments_left) > 1:
                segments_left.pop()
        elif segment != ".":
            segments_left.append(segment)
    if segments[-1] in (".", ".."):
        segments_left.append("")
    return "/".join(segments_left)


def _escaped(sign: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in sign[0].encode("utf-8", "replace"))
