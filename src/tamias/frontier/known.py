"""A worker's bounded memory of links that the frontier knows already."""


class KnownLinks:
    """Remembers at least the `size / 2` links seen last, and how deep; forgetting one only costs a put.

    Two generations: when the young one is full it becomes the old one, and the old one is dropped.
    """

    def __init__(self, size: int = 200_000) -> None:
        self._half = max(1, size // 2)
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}

    def __contains__(self, url: str) -> bool:
        return self.depth(url) is not None

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def depth(self, url: str) -> int | None:
        """The least depth at which the frontier is known to know a link."""
        depth = self._young.get(url)
        if depth is None and (depth := self._old.get(url)) is not None:
            self._keep(url, depth)
        return depth

    def within(self, url: str, depth: int) -> bool:
        """Whether the frontier is known to know a link at this depth or a lesser one."""
        known = self._young.get(url)
        if known is None:
            known = self.depth(url)
        return known is not None and known <= depth

    def add(self, url: str, depth: int) -> None:
        """To be called only when the link is safely in the frontier."""
        known = self.depth(url)
        self._keep(url, depth if known is None else min(depth, known))

    def _keep(self, url: str, depth: int) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[url] = depth
