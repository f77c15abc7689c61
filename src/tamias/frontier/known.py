"""A worker's bounded memory of links that the frontier knows already."""


class KnownLinks:
    """Remembers at least the `size / 2` links seen last; forgetting one costs a put, never a link.

    Two generations: when the young one is full it becomes the old one, and the old one is dropped.
    """

    def __init__(self, size: int = 200_000) -> None:
        self._half = max(1, size // 2)
        self._young: set[str] = set()
        self._old: set[str] = set()

    def __contains__(self, url: str) -> bool:
        if url in self._young:
            return True
        if url in self._old:
            self.add(url)
            return True
        return False

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def add(self, url: str) -> None:
        """To be called only when the link is safely in the frontier."""
        if len(self._young) >= self._half:
            self._old, self._young = self._young, set()
        self._young.add(url)
