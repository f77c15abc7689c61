"""The memory of queries: all that run at once fit into half of what this process may have."""

import os
from pathlib import Path

_LEAST_BYTES = 256 << 20
"""A query with less than that answers little."""
_MOST_AT_ONCE = 8


def memory_limit(own: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that this process may have: those of the machine, or of a control group around it."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for line in own.read_text(encoding="utf-8").splitlines() if own.exists() else ():
        _, kinds, name = line.split(":", 2)
        folder, file = ("memory", "memory.limit_in_bytes") if kinds else ("", "memory.max")
        place = root / folder / name.lstrip("/") / file
        if "memory" not in kinds.split(",") and kinds:
            continue
        # In a container its own group may be the root that it sees.
        for each in (place, *(above / file for above in place.parent.parents if above.is_relative_to(root))):
            text = each.read_text(encoding="ascii").strip() if each.exists() else ""
            limits += [int(text)] if text.isdigit() else []
    return min(limits)


_BYTES = memory_limit() // 2
MOST_QUERIES = max(2, min(_MOST_AT_ONCE, _BYTES // _LEAST_BYTES))
"""Processes that answer queries at once."""
QUERY_MEMORY = max(_LEAST_BYTES // 2, _BYTES // MOST_QUERIES)
"""Bytes that one query may take: one that sorts the whole store ends its process, not the machine."""
