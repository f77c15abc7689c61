"""The state of harvests that ask for changes by date, of sources that are not read by a listing."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from tamias.features.dcat.datasets.mapping import BAD, MappedRecord
from tamias.features.dcat.datasets.records import described
from tamias.features.portals.paging.listing import as_stamp
from tamias.features.portals.paging.position import LAG, DatedBookmark, read_bookmark
from tamias.model.finding import Finding, HarvestEnd, HarvestStep, Problem, Quads

R = TypeVar("R")


def a_little_before(stamp: str) -> str:
    """A search index may show a record later than another that was changed after it."""
    return (datetime.fromisoformat(stamp) - LAG).isoformat(timespec="microseconds")


class DatedState(msgspec.Struct, kw_only=True):
    """State of a harvest: how far it came, and what it had. Portals add what they need."""

    datasets: int = 0
    problems: int = 0
    latest: str = ""
    """The latest time at which a record was changed, by the portal's own word."""
    undated: bool = False
    """Whether a record does not say when it was changed."""
    since: str | None = None
    """Only records that changed since are asked for; None reads everything."""
    harvests: int = 0
    """Harvests of changes since the last one of everything."""
    why: str = ""
    """Why everything is read, where changes were not enough."""

    def ask_for_changes(self, bookmark: bytes | None) -> DatedBookmark | None:
        """Ask for what changed since the last harvest, if its bookmark is good enough for that."""
        if known := read_bookmark(bookmark, DatedBookmark):
            self.latest, self.since = known.latest, a_little_before(known.latest)
            self.harvests = known.harvests + 1
        return known

    def note_update(self, said: str | None) -> None:
        """Take note of when a record was changed."""
        stamp = as_stamp(said)
        self.undated = self.undated or stamp is None
        self.latest = max(self.latest, stamp or "")

    def bookmark(self, form: type[DatedBookmark] = DatedBookmark, **more: Any) -> bytes | None:
        """The bookmark for the next harvest; None where that has to read everything."""
        if self.undated or not self.latest:
            return None
        return msgspec.msgpack.encode(form(latest=self.latest, harvests=self.harvests, **more))

    def read_everything(self, fresh: "DatedState", why: str) -> None:
        """Begin again, without asking for changes."""
        fresh.why = f"everything was read: {why}"[:1000]
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))

    def findings(
        self,
        records: Iterable[R],
        root: str,
        read: Callable[[R], MappedRecord],
        name: Callable[[R], str | None],
    ) -> list[Finding]:
        """Return what records bring, and a problem for each that cannot be read.

        In a harvest of changes the document is written again from what is stored, so nothing is said twice.
        """
        mapped, problems = list[MappedRecord](), list[Finding]()
        for record in records:
            try:
                mapped.append(read(record))
            except BAD as error:
                problems.append(Problem(f"record {name(record) or '?'} of {root}: {error}"[:1000]))
        self.datasets += len(mapped)
        self.problems += len(problems)
        return [*self.brought(mapped, root), *problems]

    def brought(self, mapped: Sequence[MappedRecord], root: str) -> list[Finding]:
        """Return what records bring that could be read."""
        findings = described(mapped, root)
        return findings if self.since is None else [each for each in findings if not isinstance(each, Quads)]

    def step(self, findings: Sequence[Finding] = (), end: HarvestEnd | None = None) -> HarvestStep:
        """The state with what it brought."""
        if end is not None and self.since is not None:
            end = msgspec.structs.replace(end, changes_only=True)
        return HarvestStep(state=msgspec.msgpack.encode(self), findings=findings, end=end)
