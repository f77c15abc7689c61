"""Seeds from the index of a web archive: CDX, CDXJ, and the index files of Common Crawl."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tamias.model.item import Seed
from tamias.model.url import fetch_url
from tamias.seeds.imported import seeds_by_line

_CDXJ = re.compile(rb"[^ ]* [0-9]{4,17} (\{.*\})$")
_URL_FIELD = 2
"""Of a CDX line, where no header says another: key, time, URL."""


class CdxSeeds:
    """Carries out `protocols.SeedSource`. An address that stands there many times in a row is one seed."""

    def seeds(self, argument: str) -> Iterator[Seed]:
        reader = _CdxReader()
        return seeds_by_line(argument, reader.read)


class _CdxReader:
    """Reads line after line."""

    def __init__(self) -> None:
        self._field = _URL_FIELD
        self._last = ""

    def read(self, line: bytes) -> Seed | None:
        if line.startswith(b" CDX "):
            self._field = line.split()[1:].index(b"a")
            return None
        if not line.strip() or line.startswith((b"#", b"!")):
            return None
        address = fetch_url(self._address(line))
        if address == self._last:
            return None
        self._last = address
        return Seed(address=address)

    def _address(self, line: bytes) -> str:
        found = _CDXJ.fullmatch(line.rstrip())
        if found:
            record = msgspec.json.decode(found[1], type=dict[str, Any])
            return str(record.get("url") or record.get("original") or "")
        fields = line.split()
        if len(fields) <= self._field:
            raise ValueError("too few fields")
        return fields[self._field].decode("utf-8", "replace")
