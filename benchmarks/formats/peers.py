"""Other readers of RDF, where they are installed: rdflib, and the programs rapper and serdi."""

import subprocess
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.formats.corpus import SITE
from benchmarks.formats.step import cpu_seconds
from benchmarks.measuring.peers import Skipped, children_seconds, skipped_program

MOST_SECONDS = 600
_RDFLIB = {
    "N-Triples": "nt", "N-Quads": "nquads", "Turtle": "turtle", "TriG": "trig", "RDF/XML": "xml",
    "JSON-LD": "json-ld", "TriX": "trix",
}  # fmt: skip
_RAPPER = {"N-Triples": "ntriples", "N-Quads": "nquads", "Turtle": "turtle", "RDF/XML": "rdfxml"}
_SERDI = {"N-Triples": "ntriples", "N-Quads": "nquads", "Turtle": "turtle", "TriG": "trig"}
_DEBIAN = {"rapper": "raptor2-utils", "serdi": "serdi"}


class ReaderPeer(msgspec.Struct, frozen=True):
    """A reader that is here, and how many processor seconds it takes for a file in a format it knows."""

    name: str
    forms: dict[str, str]
    seconds: Callable[[Path, str], float]


def peers() -> list[ReaderPeer | Skipped]:
    """All, in the order of the report."""
    return [_rdflib(), _program("rapper", _RAPPER, _rapper), _program("serdi", _SERDI, _serdi)]


def _rdflib() -> ReaderPeer | Skipped:
    if find_spec("rdflib") is None:
        return Skipped("rdflib", "it is not installed (pip install rdflib)")
    return ReaderPeer(f"rdflib {version('rdflib')}", _RDFLIB, _rdflib_seconds)


def _rdflib_seconds(path: Path, form: str) -> float:
    """Once only, for it takes long; into a store in memory, since it has no other way."""
    import rdflib

    def read() -> None:
        rdflib.Dataset().parse(source=str(path), format=form, publicID=SITE)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cpu_seconds(read, times=1)


def _program(
    name: str, forms: dict[str, str], command: Callable[[Path, str], list[str]]
) -> ReaderPeer | Skipped:
    return skipped_program(name, _DEBIAN[name]) or ReaderPeer(name, forms, partial(_program_seconds, command))


def _rapper(path: Path, form: str) -> list[str]:
    return ["rapper", "--quiet", "--count", "--input", form, str(path), SITE]


def _serdi(path: Path, form: str) -> list[str]:
    return ["serdi", "-i", form, "-o", "nquads", str(path), SITE]


def _program_seconds(command: Callable[[Path, str], list[str]], path: Path, form: str) -> float:
    before = children_seconds()
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    subprocess.run(command(path, form), check=True, timeout=MOST_SECONDS, **quiet)
    return children_seconds() - before
