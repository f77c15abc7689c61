"""The links of a document on their way to the frontier, as far as its site lets them be followed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamias.model.document import DocumentBudget
from tamias.model.finding import Links
from tamias.model.site import Metas
from tamias.model.usage import verdict
from tamias.permit.signals import signals_of

if TYPE_CHECKING:
    from tamias.crawl.analysis.extractor import Extraction, TakeLinks


class LinkFollowing:
    """Counts links and hands them on, as long as the site does not say that they are not to be followed."""

    def __init__(
        self,
        headers: Sequence[tuple[str, str]],
        found: "Extraction",
        take_links: "TakeLinks",
        budget: DocumentBudget,
    ) -> None:
        self.budget = budget
        self._headers = headers
        self._found = found
        self._take_links = take_links
        self._forbidden = bool(headers) and verdict(signals_of(headers, (), ())).nofollow

    def hear(self, finding: Links | Metas) -> None:
        """The page names links, or speaks of its use; this holds for what comes after."""
        if isinstance(finding, Links):
            self.take(finding.references, finding.base, finding.kind)
            return
        self._found.metas += finding.pairs
        self._forbidden = verdict(signals_of(self._headers, self._found.metas, ())).nofollow

    def take(self, references: Sequence[str], base: str, kind: str | None = None) -> None:
        """Hands links on."""
        if references and not self._forbidden:
            self.budget.spend(len(references) * len(base))  # each becomes at least as long
            self._found.links += len(references)
            self._take_links(references, base, kind)
