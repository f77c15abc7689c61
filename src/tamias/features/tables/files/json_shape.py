"""Structure of JSON: the paths that recur, with the types and counts of their values."""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from tamias.analyse.chunks import utf8_chunks
from tamias.features.tables.encoding import CHUNK, encoding_in
from tamias.features.tables.files.geography import Atlas
from tamias.features.tables.files.json_items import Items
from tamias.features.tables.limits import ProfileLimit, ProfileRun
from tamias.model.profile import Geography, PathProfile, Structure


class JsonPlace:
    """A place such as `$.features[].id`, the counts of its values by type, and the places below it."""

    __slots__ = ("below", "counts", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.counts: dict[str, int] = {}
        self.below: dict[Any, JsonPlace] = {}

    def count(self, kind: str) -> None:
        """Count one more value of a type."""
        self.counts[kind] = self.counts.get(kind, 0) + 1


class Places:
    """The places of one document."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._all: dict[str, JsonPlace] = {}
        self.complete = True

    def at(self, path: str) -> JsonPlace | None:
        """The place of a path; None where there are too many already."""
        place = self._all.get(path)
        if place is None and len(self._all) < self._most:
            place = self._all[path] = JsonPlace(path)
        self.complete &= place is not None
        return place

    def below(self, place: JsonPlace, key: Any, step: Callable[[Any], str]) -> JsonPlace | None:
        """The place that a key leads to; `step` says how the key is written in a path."""
        known = place.below.get(key)
        if known is None:
            known = self.at(place.path + step(key))
            if known is not None:
                place.below[key] = known
        return known

    @property
    def profiles(self) -> tuple[PathProfile, ...]:
        """The profiles of the places, in the order in which they were found."""
        return tuple(PathProfile(place.path, place.counts) for place in self._all.values() if place.counts)


_PLAIN = re.compile(r"[A-Za-z_][\w-]*")
_TYPES: dict[type, str] = {
    dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number",
    type(None): "null",
}  # fmt: skip


def _step(key: str) -> str:
    return f".{key}" if _PLAIN.fullmatch(key) else f"[{msgspec.json.encode(key[:100]).decode()}]"


class JsonReader:
    """Reads one file of JSON or JSON lines, and counts types by path."""

    def __init__(self, path: Path, run: ProfileRun) -> None:
        self._path = path
        self._run = run
        self._places = Places(run.limits.paths)
        self._depth = 0
        self._cut = False
        self._atlas = Atlas(run.limits)
        self._syntax = "json"
        self._items = 0
        self._complete = True

    def read(self) -> tuple[Structure | None, Geography | None]:
        """Return the structure, and the geography of GeoJSON; neither for a body that is not JSON."""
        try:
            self._read()
        except ProfileLimit as limit:
            self._complete = False
            self._run.problems.append(str(limit))
        paths = sorted(self._places.profiles, key=lambda each: each.path)
        if not paths:
            most = f"more than {self._run.limits.item} bytes in one piece"
            self._run.problems += (
                [] if self._run.problems else [f"{most}, not looked into (limit profile.item)"]
            )
            return None, None
        structure = Structure(
            syntax=self._syntax,
            items=self._items,
            paths=tuple(paths),
            depth=self._depth,
            complete=self._complete and self._places.complete and not self._cut,
        )
        return structure, self._atlas.geography(complete=self._complete)

    def _add(self, value: Any, path: str) -> None:
        """Takes in a value and all that is in it."""
        place = self._places.at(path)
        waiting = [] if place is None else [(value, place, 0)]
        while waiting:
            value, place, depth = waiting.pop()
            place.count(_TYPES.get(type(value), "string"))
            if not isinstance(value, dict | list):
                continue
            if depth == self._run.limits.depth:
                self._cut = True
                continue
            self._depth = max(self._depth, depth + 1)
            if isinstance(value, dict):
                for key, each in value.items():
                    below = self._places.below(place, key, _step)
                    if below is not None:
                        waiting.append((each, below, depth + 1))
            elif value:
                below = self._places.below(place, None, lambda _: "[]")
                if below is not None:
                    waiting.extend((each, below, depth + 1) for each in value)

    def _read(self) -> None:
        if self._path.stat().st_size <= self._run.limits.item:
            self._whole()
            return
        head = next(self._chunks(), b"").lstrip()
        if head.startswith(b"["):
            self._streamed(1, "$[]")
        elif _are_lines(head):
            self._streamed(0, "$")
        else:
            self._streamed(2, "$..")

    def _whole(self) -> None:
        text = b"".join(self._chunks())
        try:
            value = msgspec.json.decode(text)
        except RecursionError:
            self._run.problems.append("JSON nested too deep to be read")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if _are_lines(text.lstrip()):
                self._streamed(0, "$")
            else:
                self._run.problems.append(f"no valid JSON: {error}")
        else:
            self._items = len(value) if isinstance(value, list) else 1
            self._add(value, "$")
            self._atlas.take(value)

    def _streamed(self, depth: int, path: str) -> None:
        self._syntax = "json" if depth else "json-lines"
        items = Items(depth, self._run.limits.item)
        bad = 0
        for text in items.cut(self._chunks()):
            self._run.check()
            try:
                value = msgspec.json.decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                bad += 1
                continue
            self._items += 1
            self._add(value, f"{path}{items.key}[]" if depth == 2 else path)
            self._atlas.take(value)
        if bad:
            self._run.problems.append(f"{bad} items are no valid JSON")
        most = self._run.limits.item
        if items.too_long:
            self._run.problems.append(
                f"{items.too_long} items of more than {most} bytes left out (limit profile.item)"
            )
        if self._path.stat().st_size > self._run.limits.bytes:
            raise self._run.beyond_bytes()

    def _chunks(self) -> Iterator[bytes]:
        encoding = encoding_in(self._path, None, CHUNK)
        with self._path.open("rb") as file:
            chunks = islice(iter(lambda: file.read(CHUNK), b""), max(1, self._run.limits.bytes // CHUNK))
            yield from utf8_chunks(chunks, encoding.name)


def _are_lines(text: bytes) -> bool:
    """Return whether the first line is a JSON value and another value follows."""
    first, _, rest = text.partition(b"\n")
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, RecursionError):
        return False
    return rest.lstrip()[:1] in (b"{", b"[")
