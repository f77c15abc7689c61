"""The addresses of versions as Mementos."""

from collections import Counter
from collections.abc import Sequence

from tamias.archive.moments import digits
from tamias.model.resource import Version
from tamias.plugins import parts


def timestamps(versions: Sequence[Version]) -> list[str]:
    """Return the times in addresses of versions: to the second, or finer where one second has two."""
    seconds = [digits(version.captured_at) for version in versions]
    shared = {second for second, n in Counter(seconds).items() if n > 1}
    return [
        f"{second}{version.captured_at % 1000:03d}" if second in shared else second
        for second, version in zip(seconds, versions, strict=True)
    ]


def memento_path(stamp: str, url: str) -> str:
    """Return the path of a Memento."""
    return f"/memento/{stamp}/{url}"


def memento_paths(url: str, versions: Sequence[Version]) -> list[str | None]:
    """Return the path of each version as a Memento; none where versions are not replayed."""
    if "memento" not in parts("endpoints"):
        return [None] * len(versions)
    return [memento_path(stamp, url) for stamp in timestamps(versions)]
