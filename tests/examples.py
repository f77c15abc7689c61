"""How many examples of a property are tried: few with every change, many at night."""

import os


def examples(count):
    """A fifth of a usual count of examples, or five times as many in `make nightly`."""
    return 5 * count if os.environ.get("TAMIAS_NIGHTLY") else max(20, count // 5)
