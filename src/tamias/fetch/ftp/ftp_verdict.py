"""What a reply of an FTP server makes of a capture. Pure."""

import re

from tamias.fetch.verdict import Verdict, failed, refused
from tamias.model.capture import Outcome

LOGIN_REPLIES = frozenset({332, 530, 532})
TLS_REPLIES = frozenset({234, 521, 522, 533, 534, 536})
"""When one is the last, TLS came to nothing, or does not protect data as the server wants (RFC 4217)."""

_TOO_MANY = re.compile(r"too many|maximum|limit|try (?:again )?later|busy|full", re.IGNORECASE)
_DENIED = re.compile(r"permission|denied|not (?:allowed|permitted)|forbidden", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]+")
_MOST_WORDS = 200


def of_reply(status: int, words: str) -> Verdict:
    """The verdict on a refusal: three digits, and words that only people agree on.

    A server says 530 to strangers and, some of them, when it is full; 550 to all that is not to be had.
    """
    reason = f"{status} {_UNPRINTABLE.sub(' ', words).strip()[:_MOST_WORDS]}".strip()
    if status in LOGIN_REPLIES:
        return failed(reason, retry=True) if _TOO_MANY.search(words) else refused(reason)
    if status == 550 and not _DENIED.search(words):
        return Verdict(Outcome.GONE, reason)
    return failed(reason, retry=400 <= status < 500)
