"""The gRPC status codes in use, and the exception that carries one to the client."""

from enum import IntEnum

from tamias.model.errors import DatabaseUnavailable, DiskFull, TamiasError, UrlError, UsageError


class Code(IntEnum):
    """Status codes of gRPC."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class CallError(Exception):
    """The call cannot be answered; the client is told why."""

    def __init__(self, code: Code, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


def refusal(error: TamiasError) -> CallError:
    """Return the gRPC error that reports an error of ours to the client."""
    if isinstance(error, UrlError | UsageError):
        return CallError(Code.INVALID_ARGUMENT, str(error))
    if isinstance(error, DiskFull):
        return CallError(Code.RESOURCE_EXHAUSTED, str(error))
    if isinstance(error, DatabaseUnavailable):
        return CallError(Code.UNAVAILABLE, str(error))
    return CallError(Code.INTERNAL, str(error))
