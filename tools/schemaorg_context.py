"""Writes what must be known of schema.org's JSON-LD context: the terms that `@vocab` alone gets wrong.

    python tools/schemaorg_context.py schemaorgcontext-30.0.jsonld 30.0

The context is `data/releases/RELEASE/schemaorgcontext.jsonld` in the repository schemaorg/schemaorg.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

TARGET = Path(__file__).parent.parent / "src" / "tamias" / "analyse" / "jsonld" / "schemaorg.txt"
WIDTH = 110


def special_terms(context: dict[str, Any]) -> Iterator[str]:
    """The terms that are more than a name in the vocabulary: each with its meaning, or all of a datatype."""
    typed: dict[str, list[str]] = defaultdict(list)
    for term, meaning in sorted(context.items()):
        if term == "@vocab":
            continue
        if isinstance(meaning, str):
            yield f"term {term} {meaning}"
        elif meaning["@id"] != f"schema:{term}":
            yield f"term {term} {_absolute(meaning['@id'], context)}"
        elif "@type" in meaning:
            typed[meaning["@type"]].append(term)
    for datatype, terms in typed.items():
        yield from (f"typed {datatype} {line}" for line in wrap(" ".join(terms), WIDTH))


def _absolute(name: str, context: dict[str, Any]) -> str:
    prefix, _, rest = name.partition(":")
    return str(context[prefix]) + rest


if __name__ == "__main__":
    context = json.loads(Path(sys.argv[1]).read_text("utf-8"))["@context"]
    lines = [f"release schema.org {sys.argv[2]}", *special_terms(context)]
    TARGET.write_text("\n".join([*lines, ""]), "utf-8")
