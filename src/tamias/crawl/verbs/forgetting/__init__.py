"""Bytes of what has a tombstone are removed everywhere; rules make tombstones; a search proves it."""
