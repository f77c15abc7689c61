"""A tree of the places that recur in a document, with counts; so many at most, whatever the document does."""

from collections.abc import Callable
from typing import Any

from tamias.model.profile import PathProfile


class JsonPlace:
    """One place, such as `$.features[].id`, what stood there, and the places below it."""

    __slots__ = ("below", "counts", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.counts: dict[str, int] = {}
        self.below: dict[Any, JsonPlace] = {}

    def count(self, kind: str) -> None:
        """One more of a kind stands there."""
        self.counts[kind] = self.counts.get(kind, 0) + 1


class Places:
    """All places of one document."""

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
        """In the order in which they were found."""
        return tuple(PathProfile(place.path, place.counts) for place in self._all.values() if place.counts)
