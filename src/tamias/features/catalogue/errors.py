"""Errors of the catalogue's store.

StoreError
├── StoreAway        it cannot be reached at this moment
├── QueryRefused     it does not take the query
├── QueryTooLong     the query was stopped at the time limit
└── AnswerTooLarge   the answer was stopped at the size limit
"""

from tamias.model.errors import TamiasError


class StoreError(TamiasError):
    """The SPARQL store failed, or cannot be started."""


class StoreAway(StoreError):
    """The store cannot be reached at this moment."""

    retry_can_help = True


class QueryRefused(StoreError):
    """The store does not take a query."""

    exit_code = 2

    def __init__(self, message: str, status: int = 400) -> None:
        """`status` is the one of HTTP."""
        super().__init__(message)
        self.status = status


class QueryTooLong(StoreError):
    """A query was stopped at the time limit."""

    exit_code = 5


class AnswerTooLarge(StoreError):
    """An answer was stopped at the size limit."""

    exit_code = 5
