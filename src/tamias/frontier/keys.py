"""The numbers behind names: 64-bit hashes of hosts and URLs, and the bucket a host lives in."""

from functools import lru_cache
from hashlib import blake2b


def hash64(text: str) -> int:
    """A signed 64-bit number, the same in every process and for ever.

    >>> hash64("example.org") == hash64("example.org")
    True
    """
    return int.from_bytes(
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True
    )


host_hash = lru_cache(maxsize=65536)(hash64)
"""`hash64` for host keys, which come again and again."""


def salted(key: str, salt: int) -> str:
    """What is hashed for the second, third, ... number of a URL whose first one was taken by another."""
    return f"{key}\n{salt}"


def bucket_of(qid: int, buckets: int) -> int:
    """The bucket of a host, never negative; `buckets` is a power of two."""
    return qid & (buckets - 1)
