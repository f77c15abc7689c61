"""Geography of GeoJSON: features, kinds of geometry, and the box around all positions."""

from collections import Counter
from typing import Any

from tamias.features.tables.limits import ProfileLimits
from tamias.model.profile import Geography

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
