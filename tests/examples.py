"""How many examples of a property are tried: few with every change, many at night."""

import os

NIGHTLY = bool(os.environ.get("TAMIAS_NIGHTLY"))


def examples(count):
    """A fifth of a usual count of examples, or five times as many in `make nightly`."""
    return 5 * count if NIGHTLY else max(20, count // 5)


def sample(cases, every):
    """One of so many cases, from the first on; all in `make nightly`."""
    return list(cases)[:: 1 if NIGHTLY else every]
