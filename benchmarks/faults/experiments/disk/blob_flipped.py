"""F13: single bits of stored bodies are flipped on the disk."""

from contextlib import closing
from hashlib import sha256

from benchmarks.faults.evidence import evidence, versions
from benchmarks.faults.experiment import Ground, Result
from benchmarks.faults.machine import Machine
from benchmarks.faults.site import Pages
from benchmarks.webs.sites import serving
from tamias.archive.blobs import BlobReader, LocalPacks
from tamias.database.connect import Database
from tamias.model.errors import TamiasError

HOSTS, EACH, FLIPS = 10, 20, 50
_WORDS = ("--delay", "0", "--workers", "1", "--sink", "archive", "--quiet")


def run(ground: Ground) -> Result:
    """`tamias check` must tell of every one that harms a body, and no harmed body may be given back."""
    pages, random = Pages(EACH), ground.random()
    with (
        serving(pages, HOSTS) as web,
        Machine(ground.folder) as machine,
        closing(Database(machine.data)),  # open all the time, so that the server is started once
    ):
        code = machine.run("crawl", *_WORDS, *pages.first(web))
        pack = max((machine.data / "blobs").glob("*.pack"), key=lambda path: path.stat().st_size)
        sound, told, wrong, untold = pack.read_bytes(), 0, 0, 0
        flips = ground.of(FLIPS, 10)
        for _ in range(flips):
            place = random.randrange(len(sound))
            flipped = bytearray(sound)
            flipped[place] ^= 1 << random.randrange(8)
            pack.write_bytes(flipped)
            is_told = bool(evidence(machine.data).damages)
            other, refused = _read(machine)
            told, wrong = told + is_told, wrong + other
            untold += not is_told and other + refused > 0
        pack.write_bytes(sound)
        whole = not evidence(machine.data).damages
    return Result(
        ok=code == wrong == untold == 0 and told > 0 and whole,
        figure=f"{told} of {flips} flipped bits told by check, {untold} of the others did harm,"
        f" {wrong} wrong bodies given back",
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
