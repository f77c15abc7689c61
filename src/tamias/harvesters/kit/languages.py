"""Texts in several languages, in the ways in which portals write them, as properties with a language."""

import re
from collections.abc import Iterator
from typing import Any, Final

from tamias.harvesters.kit.records import text, texts
from tamias.model.dataset import DcatProperty

_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")
_TWO_LETTERS: Final = (
    "aa ab af am an ar as az ba be bg bn bo br bs ca co cs cy da de dv el en eo es et eu fa fi fo fr fy "
    "ga gd gl gu he hi hr ht hu hy is it ja ka kk kl km kn ko ku ky la lb lo lt lv mi mk ml mn mr ms mt "
    "my nb ne nl nn no oc pa pl ps pt rm ro ru sa sc sd se si sk sl sq sr sv sw ta te tg th ti tk tl tr "
    "tt ug uk ur uz vi xh yi zh zu"
)
_CODES: Final = frozenset(_TWO_LETTERS.split())
"""The languages that the end of a field's name may be: `id` and a few others are left out."""


def is_by_language(value: Any) -> bool:
    """Whether a value is a table of texts by their languages.

    >>> is_by_language({"de": "Baum", "fr": None}), is_by_language({"de": {}}), is_by_language({"name": "x"})
    (True, False, False)
    """
    if not isinstance(value, dict) or not value:
        return False
    keys = dict.keys(value)
    return all(
        isinstance(key, str) and _TAG.fullmatch(key) and key[:2].lower() in _CODES for key in keys
    ) and all(each is None or isinstance(each, str | list) for each in dict.values(value))


def by_language(value: Any) -> tuple[tuple[str, str], ...]:
    """The tag and the text of each language, or of a list of them.

    >>> by_language({"de": "Baum", "en_GB": ["tree", "wood"]})
    (('de', 'Baum'), ('en-GB', 'tree'), ('en-GB', 'wood'))
    >>> by_language([{"@language": "fr", "@value": "arbre"}, {"language": "it", "label": "albero"}, "x"])
    (('fr', 'arbre'), ('it', 'albero'))
    """
    return tuple(_pairs(value))


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    if is_by_language(value):
        for tag, each in value.items():
            yield from ((tag.replace("_", "-"), one) for one in texts(each))
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            tag = text(each.get("@language")) or text(each.get("language")) or text(each.get("lang"))
            words = (
                text(each.get(name)) for name in ("@value", "label", "value", "text", "content", "title")
            )
            found = next(filter(None, words), None)
            if tag and found and _TAG.fullmatch(tag):
                yield tag, found


def translated(record: dict[str, Any], field: str) -> tuple[tuple[str, str], ...]:
    """A field's texts in its languages: in the field, in `FIELD_translated`, in `FIELD_fr` or `FIELD-fr`.

    >>> translated({"title": {"de": "Baum"}, "title_fr": "arbre"}, "title")
    (('de', 'Baum'), ('fr', 'arbre'))
    """
    found = dict.fromkeys((*by_language(record.get(field)), *by_language(record.get(f"{field}_translated"))))
    for key in list(record):
        head, tag = key[: len(field)], key[len(field) + 1 :].replace("_", "-")
        if head == field and key[len(field) : len(field) + 1] in ("_", "-") and _is_code(tag):
            found.update(((tag, one), None) for one in texts(record.get(key)))
    return tuple(found)


def in_languages(record: dict[str, Any], field: str, name: str) -> tuple[DcatProperty, ...]:
    """The same as values of a property."""
    return tuple(DcatProperty(name, one, tag) for tag, one in translated(record, field))


def one_text(value: Any) -> str | None:
    """A text; of several languages the English one, else the first.

    >>> one_text({"de": "Baum", "en": "Tree"}), one_text(["a"]), one_text(" ")
    ('Tree', None, None)
    """
    if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
        pairs = by_language(value)
        return next((one for tag, one in pairs if tag[:2] == "en"), pairs[0][1] if pairs else None)
    return text(value)


def _is_code(tag: str) -> bool:
    head = tag.partition("-")[0]
    return head in _CODES and _TAG.fullmatch(tag) is not None
