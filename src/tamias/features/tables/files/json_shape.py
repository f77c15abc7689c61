"""Structure of JSON: the paths that recur, with the types and counts of their values."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tamias.analyse.chunks import utf8_chunks
from tamias.features.archive.canonical.json_digest import Brackets
from tamias.features.tables.encoding import CHUNK, encoding_in
from tamias.features.tables.limits import ProfileLimit, ProfileLimits, ProfileRun
from tamias.model.profile import Geography, PathProfile, Structure

_GEOMETRIES = frozenset(
    {"Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon", "GeometryCollection"}
)


class Atlas:
    """Takes in GeoJSON objects of any kind; other values are let pass."""

    def __init__(self, limits: ProfileLimits) -> None:
        self._limits = limits
        self._features = 0
        self._geometries: Counter[str] = Counter()
        self._properties: dict[str, None] = {}
        self._crs: str | None = None
        self._west = self._south = float("inf")
        self._east = self._north = float("-inf")
        self._found = False

    def take(self, value: Any) -> None:
        """Add one value: a collection, a feature, or a bare geometry."""
        if not isinstance(value, dict):
            return
        kind = value.get("type")
        if kind == "FeatureCollection" and isinstance(value.get("features"), list):
            self._found = True
            self._crs = _crs(value.get("crs")) or self._crs
            for feature in value["features"]:
                self.take(feature)
        elif kind == "Feature" and "geometry" in value:
            self._feature(value)
        elif kind in _GEOMETRIES and ("coordinates" in value or "geometries" in value):
            self._found = True
            self._geometry(value)

    def _feature(self, feature: dict[str, Any]) -> None:
        self._found = True
        self._features += 1
        self._geometry(feature["geometry"])
        properties = feature.get("properties")
        if isinstance(properties, dict) and len(self._properties) < self._limits.paths:
            self._properties.update(dict.fromkeys(properties))

    def _geometry(self, geometry: Any) -> None:
        if not isinstance(geometry, dict):
            self._geometries["null"] += 1
            return
        self._geometries[str(geometry.get("type"))[:50]] += 1
        waiting = [geometry.get("coordinates")]
        waiting += [each.get("coordinates") for each in _parts(geometry)]
        while waiting:
            position = waiting.pop()
            if not isinstance(position, list) or not position:
                continue
            if isinstance(position[0], int | float):
                self._position(position)
            else:
                waiting.extend(position)

    def _position(self, position: list[Any]) -> None:
        if len(position) < 2 or not isinstance(position[1], int | float):
            return
        x, y = position[0], position[1]
        self._west, self._east = min(self._west, x), max(self._east, x)
        self._south, self._north = min(self._south, y), max(self._north, y)

    def geography(self, *, complete: bool) -> Geography | None:
        """Return what was found; None if nothing was GeoJSON."""
        if not self._found:
            return None
        located = self._west <= self._east
        return Geography(
            features=self._features,
            geometries=dict(self._geometries),
            bbox=(self._west, self._south, self._east, self._north) if located else None,
            crs=self._crs,
            properties=tuple(self._properties)[: self._limits.paths],
            complete=complete,
        )


def _parts(geometry: dict[str, Any]) -> list[dict[str, Any]]:
    parts = geometry.get("geometries")
    return [each for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []


def _crs(crs: Any) -> str | None:
    """GeoJSON before RFC 7946 could name another system; the usual one is not worth telling."""
    properties = crs.get("properties") if isinstance(crs, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else None
    if not isinstance(name, str) or name.endswith(("CRS84", "EPSG::4326", "EPSG:4326")):
        return None
    return name[:200]


_LAST_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:\s*\[?\s*\Z')
_LONGEST_FRAME = 1 << 10


class Items:
    """The objects and arrays that stand `depth` brackets deep: 0 for lines, 1 for elements of an array."""

    def __init__(self, depth: int, longest: int) -> None:
        self._depth = depth
        self._longest = longest
        self._brackets = Brackets()
        self._item: list[bytes] = []
        self._size = 0
        self._frame = b""
        self.key: str | None = None
        """The last key before the item: what an array, or the item itself, is the value of."""
        self.too_long = 0
        """Items that were longer than the limit; they are left out."""

    def cut(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The items, in order; an unfinished one at the end is left out."""
        for text in chunks:
            within = self._brackets.level > self._depth
            place = 0
            for edge in self._edges(text):
                if within:
                    yield from self._ended(text[place:edge])
                else:
                    self._around(text[place:edge])
                within, place = not within, edge
            if within:
                self._goes_on(text[place:])
            else:
                self._around(text[place:])

    def _edges(self, text: bytes) -> list[int]:
        """Return the positions at which items begin and end, alternately."""
        _, steps, levels = self._brackets.levels(text)
        starts = np.flatnonzero((steps == 1) & (levels == self._depth + 1))
        ends = np.flatnonzero((steps == -1) & (levels == self._depth)) + 1
        return [int(edge) for edge in np.sort(np.concatenate([starts, ends]))]

    def _goes_on(self, piece: bytes) -> None:
        self._size += len(piece)
        self._item = [*self._item, piece] if self._size <= self._longest else []

    def _ended(self, piece: bytes) -> Iterator[bytes]:
        self._goes_on(piece)
        if self._size <= self._longest:
            yield b"".join(self._item)
        else:
            self.too_long += 1
        self._item, self._size = [], 0

    def _around(self, piece: bytes) -> None:
        if piece.strip(b" \t\r\n,"):
            self._frame = (self._frame + piece)[-_LONGEST_FRAME:]
            found = _LAST_KEY.search(self._frame)
            self.key = found[1].decode("utf-8", "replace") if found else None


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
