"""What an experiment is given and gives back, and what a data directory holds when it is over."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from random import Random

import msgspec

from tamias.archive.captures import all_captures
from tamias.archive.versions.resources import read_versions
from tamias.database.connect import Database, Session
from tamias.features.check.checkup import Checkup
from tamias.model.capture import Outcome
from tests.all_resources import all_resources


class ExperimentSetup(msgspec.Struct, frozen=True, kw_only=True):
    """Where one experiment takes place, and how large it is."""

    folder: Path
    seed: int = 1
    share: float = 1.0
    """Of the size that the figures were promised for."""
    hostile: Path | None = None
    """What `python -m benchmarks hostile --json` printed, if it need not run again."""

    def of(self, full: float, least: float = 1) -> int:
        """So many, at this size.

        >>> setup = ExperimentSetup(folder=Path(), share=0.1)
        >>> setup.of(200, 5), setup.of(20, 5)
        (20, 5)
        """
        return round(max(least, full * self.share))

    def random(self) -> Random:
        """The same chances for the same seed."""
        return Random(self.seed)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    figure: str
    ok: bool | None = None
    """None: it could not be tried here, and the figure says why."""
    seconds: float = 0.0

    @property
    def word(self) -> str:
        """The verdict."""
        return "skipped" if self.ok is None else "pass" if self.ok else "FAIL"


Experiment = Callable[[ExperimentSetup], Result]


class Fault(msgspec.Struct, frozen=True):
    """One row of the table."""

    number: str
    name: str
    fault: str
    """What is done."""
    promise: str
    """The figure that is promised."""


class FaultExperiment(Fault, frozen=True):
    """A fault, and what makes it."""

    run: Experiment


class ArchiveEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that counts of a data directory. Digests are those of the bodies."""

    versions: dict[str, list[str]]
    """By address, oldest first."""
    visited: Counter[str]
    """How many attempts on an address succeeded."""
    damages: list[str]
    set_aside: frozenset[str] = frozenset()
    """Addresses of documents that are blamed for the deaths of two workers, and told to be."""

    def lost(self, truth: dict[str, bytes]) -> int:
        """Addresses without a version; those that were set aside are told apart."""
        return sum(not self.versions.get(url) for url in truth if url not in self.set_aside)

    def doubled(self) -> int:
        """Versions too many: the same body twice in one address, or two where nothing changed."""
        return sum(max(0, len(each) - 1) for each in self.versions.values())

    def twice(self) -> int:
        """Attempts that were taken although another had been."""
        return sum(count - 1 for count in self.visited.values())

    def wrong(self, truth: dict[str, bytes]) -> int:
        """Versions with other bytes than were served whole."""
        right = {url: sha256(body).hexdigest() for url, body in truth.items()}
        return sum(digest != right.get(url) for url, each in self.versions.items() for digest in each)


def evidence(data: Path) -> ArchiveEvidence:
    """Reads every row, and every stored byte."""
    with closing(Database(data, create=False)) as database, closing(database.session()) as session:
        with closing(Checkup(database, data)) as checkup:
            damages = [f"{fault.kind} {fault.name}: {fault.problem}" for fault in checkup.faults()]
        captures = list(all_captures(session))
        return ArchiveEvidence(
            versions=versions(session),
            visited=Counter(each.url for each in captures if each.outcome is Outcome.OK),
            damages=damages,
            set_aside=frozenset(each.url for each in captures if each.reason.startswith("set aside")),
        )


def versions(session: Session) -> dict[str, list[str]]:
    """The digests of the versions of every resource, oldest first."""
    urls = {each.id: each.url for each in all_resources(session)}
    found = read_versions(session, list(urls))
    return {url: [version.sha256 for version in found[name]] for name, url in urls.items() if name in found}
