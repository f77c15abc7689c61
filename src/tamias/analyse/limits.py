"""The refusal of documents that would cost too much, by limits that the parsers do not enforce themselves."""

MIB = 1 << 20


class RefusedError(Exception):
    """A document is not read on, because it would cost too much; the message names the limit."""
