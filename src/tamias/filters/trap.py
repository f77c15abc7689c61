"""Keeps out URLs of the shape that endless sites produce: calendars, loops of relative links, facets."""

from collections.abc import Sequence

from tamias.model.errors import ConfigError


class TrapFilter:
    """Sets limits to the shape of a URL and to its distance from the seeds.

    `max_repeats`: how often one path segment, or one run of segments, may follow upon itself.
    """

    def __init__(
        self,
        max_length: int = 2083,
        max_segments: int = 20,
        max_repeats: int = 2,
        max_depth: int | None = None,
        max_query_pairs: int = 30,
    ) -> None:
        if max_repeats < 1:
            raise ConfigError(f"max_repeats is {max_repeats}, but every segment is there once: use 1 or more")
        self._max_length = max_length
        self._max_segments = max_segments
        self._max_repeats = max_repeats
        self._max_depth = max_depth
        self._max_query_pairs = max_query_pairs

    def refuse(self, url: str, depth: int) -> str | None:
        if self._max_depth is not None and depth > self._max_depth:
            return f"trap: depth {depth} is over max_depth {self._max_depth}"
        if len(url) > self._max_length:
            return f"trap: {len(url)} characters are over max_length {self._max_length}"
        path, _, query = url.partition("://")[2].partition("?")
        return self._refuse_query(query) or self._refuse_path(path)

    def _refuse_query(self, query: str) -> str | None:
        pairs = query.count("&") + 1 if query else 0
        if pairs > self._max_query_pairs:
            return f"trap: {pairs} query pairs are over max_query_pairs {self._max_query_pairs}"
        return None

    def _refuse_path(self, path: str) -> str | None:
        segments = [segment for segment in path.split("/")[1:] if segment]
        if len(segments) > self._max_segments:
            return f"trap: {len(segments)} path segments are over max_segments {self._max_segments}"
        repeated = _repeated(segments, self._max_repeats)
        if repeated:
            return f"trap: /{repeated[:100]} repeats more often than max_repeats {self._max_repeats}"
        return None


def _repeated(segments: Sequence[str], most: int) -> str | None:
    """The shortest run of segments that follows upon itself until it is there more than `most` times."""
    if len(segments) - len(set(segments)) < most:
        return None
    for length in range(1, len(segments) // (most + 1) + 1):
        same = 0
        for start in range(len(segments) - length):
            same = same + 1 if segments[start] == segments[start + length] else 0
            if same == length * most:
                return "/".join(segments[start + 1 : start + 1 + length])
    return None
