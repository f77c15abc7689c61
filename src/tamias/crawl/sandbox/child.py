"""The process inside the sandbox: analyses one document after another, and tells what it finds by frames."""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from tamias.crawl.analysis.analysers import ContextCache, most_unpacked
from tamias.crawl.analysis.extractor import Extractor, ReadingState, Wanting
from tamias.crawl.sandbox.sandbox import (
    Broke,
    Context,
    DocumentEnd,
    FrameError,
    Frames,
    Job,
    Linked,
    Passed,
    Plan,
    Ready,
    WantsContext,
    WantsMore,
    Wrote,
    orders,
)
from tamias.crawl.sandbox.walls import CpuAllowance, build_walls, die_with_parent
from tamias.model.capture import Body, Extent
from tamias.model.finding import Worded, Words
from tamias.settings import SandboxSettings

PIECE = 1 << 20
MOST_REFERENCES = 1000
LONGEST_REFERENCE = 1 << 16
"""No filter lets such an address in."""


class RequestedContexts(ContextCache):
    """Contexts that the worker is asked for; a place to remember them."""

    def __init__(self, frames: Frames) -> None:
        super().__init__()
        self._frames = frames

    def __call__(self, address: str) -> bytes | None:
        if address not in self._known:
            self._frames.send(WantsContext(sound(address)))
            answer = self._frames.receive(orders)
            if isinstance(answer, Context) and answer.tried:
                self.put(address, answer.data)
        return super().__call__(address)


class Teller:
    """Takes what is found of one document, as a writer and as a taker of links, and hands it on."""

    def __init__(self, frames: Frames, limits: SandboxSettings, start: ReadingState | None) -> None:
        self._frames = frames
        self._limits = limits
        self.start = start
        self._allow()

    def _allow(self) -> None:
        self._found_something = CpuAllowance(self._limits.cpu, self._limits.cpu_whole).renew

    def save(self, reading: ReadingState) -> None:
        """Hand on how far it was read; what follows has its processor time for itself."""
        reading.found.problems = [sound(problem) for problem in reading.found.problems]
        self._frames.send(Passed(reading))
        self._allow()

    @property
    def extent(self) -> Extent:
        """Nowhere: the worker knows where it puts the document."""
        return Extent(0, 0, 0, 0)

    def write(self, chunk: bytes) -> None:
        self._found_something()
        for start in range(0, len(chunk), PIECE):
            self._frames.send(Wrote(chunk[start : start + PIECE]))

    def links(self, references: Sequence[str], base: str, kind: str | None) -> None:
        self._found_something()
        sayable = [sound(each) for each in references if len(each) <= LONGEST_REFERENCE]
        words = references.words if isinstance(references, Worded) else {}
        spoken = {sound(each): _sound_words(found) for each, found in words.items()}
        for start in range(0, len(sayable), MOST_REFERENCES):
            part = sayable[start : start + MOST_REFERENCES]
            known = {each: spoken[each] for each in part if each in spoken} if spoken else {}
            self._frames.send(Linked(part, base, kind, known))

    @contextmanager
    def document(self) -> Iterator["Teller"]:
        yield self


def study_all(frames: Frames, extractor: Extractor, limits: SandboxSettings) -> None:
    """Analyse documents until the worker closes its end."""
    while isinstance(job := frames.receive(orders), Job):
        with _received(frames, job) as body:
            frames.send(_extracted(frames, extractor, job, body, limits))


@contextmanager
def _received(frames: Frames, job: Job) -> Iterator[Body]:
    body = job.capture.body
    assert body is not None
    if body.descriptor is None:
        yield body
        return
    with os.fdopen(frames.files.pop(), "rb") as file:
        yield msgspec.structs.replace(body, descriptor=file.fileno())


def _extracted(
    frames: Frames, extractor: Extractor, job: Job, body: Body, limits: SandboxSettings
) -> DocumentEnd | WantsMore | Broke:
    teller = Teller(frames, limits, job.start)
    stored = teller if job.is_stored else None
    try:
        found = extractor.extract(
            job.capture, body, teller.document, teller.links, job.kind, stored, job.most_bytes
        )
    except Wanting as wanting:
        return WantsMore([sound(address) for address in wanting.addresses])
    except MemoryError:
        return Broke("", memory=True)
    except (BrokenPipeError, FrameError, EOFError):
        raise
    except Exception as error:  # noqa: BLE001 (told to the worker, who records it)
        return Broke(sound(f"{type(error).__name__}: {error}")[:1000])
    found.problems = [sound(problem) for problem in found.problems]
    return DocumentEnd(found)


def _sound_words(words: Words) -> Words:
    return msgspec.structs.replace(
        words, anchor=sound(words.anchor), left=sound(words.left), right=sound(words.right)
    )


def sound(text: str) -> str:
    """Text that can be sent: half of a surrogate pair is no character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def main() -> None:
    """Reads orders from standard input and answers on standard output, which nobody else may write to."""
    die_with_parent(int(sys.argv[1]))
    outgoing = os.dup(1)
    os.dup2(2, 1)
    frames = Frames(0, outgoing, files_come=True)
    plan = frames.receive(orders)
    assert isinstance(plan, Plan)
    extractor = Extractor(plan.settings, RequestedContexts(frames))
    extractor.load_everything()
    missing = build_walls(plan.settings.sandbox, most_unpacked(plan.settings, tempfile.gettempdir()))
    die_with_parent(int(sys.argv[1]))  # becoming another user has made the kernel forget it
    frames.send(Ready(missing))
    try:
        study_all(frames, extractor, plan.settings.sandbox)
    except (EOFError, BrokenPipeError, msgspec.MsgspecError):
        return


if __name__ == "__main__":
    main()
