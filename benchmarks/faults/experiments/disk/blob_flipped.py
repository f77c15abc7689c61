"""F13: single bits of stored bodies are flipped on the disk."""

from contextlib import closing
from hashlib import sha256

from benchmarks.faults.evidence import evidence, versions
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import serving
from tamias.archive.blobs import BlobReader, LocalPacks
from tamias.database.connect import Database
from tamias.model.errors import TamiasError

HOSTS, EACH, FLIPS = 10, 20, 50
_WORDS = ("--delay", "0", "--workers", "1", "--sink", "archive", "--quiet")


def run(setup: ExperimentSetup) -> Result:
    """`tamias check` must tell of every one that harms a body, and no harmed body may be given back."""
    pages, random = PageTree(EACH), setup.random()
    with (
        serving(pages, HOSTS) as web,
        Machine(setup.folder) as machine,
        closing(Database(machine.data)),  # open all the time, so that the server is started once
    ):
        code = machine.run("crawl", *_WORDS, *pages.first(web))
        pack = max((machine.data / "blobs").glob("*.pack"), key=lambda path: path.stat().st_size)
        sound, reported, wrong, unreported = pack.read_bytes(), 0, 0, 0
        flips = setup.of(FLIPS, 10)
        for _ in range(flips):
            place = random.randrange(len(sound))
            flipped = bytearray(sound)
            flipped[place] ^= 1 << random.randrange(8)
            pack.write_bytes(flipped)
            is_reported = bool(evidence(machine.data).damages)
            other, refused = _read(machine)
            reported, wrong = reported + is_reported, wrong + other
            unreported += not is_reported and other + refused > 0
        pack.write_bytes(sound)
        whole = not evidence(machine.data).damages
    return Result(
        ok=code == wrong == unreported == 0 and reported > 0 and whole,
        figure=f"{reported} of {flips} flipped bits reported by check, {unreported} of the others did damage,"
        f" {wrong} wrong bodies returned",
    )


def _read(machine: Machine) -> tuple[int, int]:
    """Bodies that are given back and are not what was kept, and those that are not given back."""
    wrong = refused = 0
    with closing(Database(machine.data, create=False)) as database, closing(database.session()) as session:
        reader = BlobReader(LocalPacks(machine.data / "blobs"), session)
        for digest in {digest for each in versions(session).values() for digest in each}:
            try:
                wrong += sha256(reader.read(digest)).hexdigest() != digest
            except TamiasError:
                refused += 1
    return wrong, refused
