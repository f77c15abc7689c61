"""Writes what must be known of schema.org's JSON-LD context: the terms that `@vocab` alone gets wrong.

    python tools/schemaorg_context.py schemaorgcontext-30.0.jsonld 30.0

The context is `data/releases/RELEASE/schemaorgcontext.jsonld` in the repository schemaorg/schemaorg.
"""

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src" / "tamias" / "analyse" / "jsonld" / "schemaorg.json"


def special_terms(context: dict[str, Any]) -> dict[str, Any]:
    """The terms that are more than a name in the vocabulary."""
    vocabulary = context["@vocab"]
    special: dict[str, Any] = {}
    for term, meaning in context.items():
        if term == "@vocab":
            continue
        if isinstance(meaning, str):
            special[term] = meaning
        elif meaning["@id"] != f"schema:{term}":
            special[term] = _absolute(meaning["@id"], context)
        elif "@type" in meaning:
            special[term] = {"@id": vocabulary + term, "@type": _type(meaning["@type"], vocabulary)}
    return special


def _type(name: str, vocabulary: str) -> str:
    return name if name.startswith("@") else vocabulary + name


def _absolute(name: str, context: dict[str, Any]) -> str:
    prefix, _, rest = name.partition(":")
    return str(context[prefix]) + rest


if __name__ == "__main__":
    context = json.loads(Path(sys.argv[1]).read_text("utf-8"))["@context"]
    content = {"release": sys.argv[2], "vocabulary": context["@vocab"], "terms": special_terms(context)}
    TARGET.write_text(json.dumps(content, indent=0, sort_keys=True) + "\n", "utf-8")
