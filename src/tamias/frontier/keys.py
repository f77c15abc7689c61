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


_OWN = "\x1f"
_BUCKET_BITS = 0xFFFF


def own_queue(crawl: int, key: str) -> str:
    """The host key of a crawl whose queues share no politeness with those of other crawls."""
    return f"{key}{_OWN}{crawl}"


def shared_key(host: str) -> str:
    """The key by which other crawls know a host.

    >>> shared_key(own_queue(7, "example.org")), shared_key("example.org")
    ('example.org', 'example.org')
    """
    return host.partition(_OWN)[0]


@lru_cache(maxsize=65536)
def host_hash(host: str) -> int:
    """The number of a host key. Those that share a key are in one bucket, however many buckets there are."""
    key, own, _ = host.partition(_OWN)
    number = hash64(key)
    return number if not own else (hash64(host) & ~_BUCKET_BITS) | (number & _BUCKET_BITS)


def salted(key: str, salt: int) -> str:
    """Return the text to hash for a further number of a URL whose first number is taken."""
    return f"{key}\n{salt}"


def bucket_of(qid: int, buckets: int) -> int:
    """The bucket of a host, never negative; `buckets` is a power of two."""
    return qid & (buckets - 1)
