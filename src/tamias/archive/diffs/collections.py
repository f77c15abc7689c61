"""The difference of a collection, such as a portal, between two dates."""

from collections.abc import Mapping

import msgspec


class CollectionDiff(msgspec.Struct, frozen=True):
    """The resources that came, that have another version, and that are gone."""

    added: list[str]
    changed: list[str]
    gone: list[str]


def collection_diff(before: Mapping[str, str], after: Mapping[str, str]) -> CollectionDiff:
    """Compares the current version of every resource at two times.

    >>> collection_diff({"a": "1", "b": "1"}, {"b": "2", "c": "1"})
    CollectionDiff(added=['c'], changed=['b'], gone=['a'])
    """
    return CollectionDiff(
        added=sorted(after.keys() - before.keys()),
        changed=sorted(name for name in before.keys() & after.keys() if before[name] != after[name]),
        gone=sorted(before.keys() - after.keys()),
    )
