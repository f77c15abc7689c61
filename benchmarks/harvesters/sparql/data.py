"""Generated statements, ten of each subject, in the manner of a catalogue of datasets."""

from collections.abc import Iterator
from pathlib import Path

_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/ns/dcat#Dataset>"
_WORDS = (
    "title", "abstract", "modified", "theme", "publisher", "download", "keyword", "identifier", "creator",
)  # fmt: skip
_INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


def statements(count: int) -> Iterator[str]:
    """So many lines of N-Triples, all different."""
    for number in range(count):
        subject, turn = divmod(number, 10)
        yield f"<http://data.example.org/dataset/{subject}> {_said(subject, turn)} .\n"


def _said(subject: int, turn: int) -> str:
    if turn == 0:
        return _TYPE
    predicate = f"<http://example.org/vocab#{_WORDS[turn - 1]}>"
    if turn < 3:
        return f'{predicate} "{_WORDS[turn - 1]} of dataset {subject}, in some words of text"@en'
    if turn % 2:
        return f"{predicate} <http://data.example.org/thing/{(subject * 7 + turn) % 50_000}>"
    return f'{predicate} "{subject * turn}"^^{_INTEGER}'


def write(path: Path, count: int) -> None:
    """The statements as a file."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(statements(count))
