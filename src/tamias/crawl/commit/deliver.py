"""Brings what is committed to the sinks outside: one thread for each, in the supervisor's process."""

import threading
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec

from tamias.archive.captures import some_captures
from tamias.archive.file_store import segments_of
from tamias.database.connect import Database, Session
from tamias.model.errors import ConfigError, TamiasError
from tamias.plugins import load, parts
from tamias.sinks.delivery import Deliverer, OpenSink, Surroundings, split_sink
from tamias.sinks.outbox import Outbox, add_sink
from tamias.sinks.segments.segment_files import SegmentReader


def near_sinks() -> set[str]:
    """Return the sinks that workers write themselves, besides the segments: they need bodies."""
    return (parts("hooks").keys() & {"archive"}) | parts("crawl_sinks").keys()


def _with_the_crawl() -> set[str]:
    return {"nquads", *near_sinks()}


class OutsideSink(msgspec.Struct, frozen=True):
    """A sink outside, as the user named it, with its number in the database."""

    text: str
    number: int


class Deliveries:
    """Delivers to all sinks of a crawl until closed. A sink that cannot be used at all stops the crawl."""

    def __init__(
        self,
        database: Database,
        data: Path,
        sinks: Sequence[OutsideSink],
        buckets: int,
        *,
        compress: bool = False,
    ) -> None:
        """`compress` where files are to be packed, as far as they are not by themselves."""
        self._database = database
        self._data = data
        self._compress = compress
        self._buckets = buckets
        self._sinks = sinks
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._deliver, args=[sink], daemon=True) for sink in sinks]
        self.trouble: TamiasError | None = None

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def waiting(self, session: Session) -> int:
        """Documents that are not delivered yet."""
        boxes = [Outbox(session, sink.number, buckets=self._buckets) for sink in self._sinks]
        return sum(box.waiting().documents for box in boxes)

    def refused(self, session: Session) -> list[str]:
        """Documents that a sink does not take, and why."""
        return [
            f"{sink.text}: {document}: {problem}"
            for sink in self._sinks
            for document, problem in Outbox(session, sink.number, buckets=self._buckets).refused()
        ]

    def close(self) -> None:
        """Ends after what is under way; the rest is delivered by a later run."""
        self._ending.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _deliver(self, sink: OutsideSink) -> None:
        with closing(self._database.session()) as session:
            try:
                with SegmentReader(segments_of(session, self._data)) as reader:
                    self._deliver_from(reader, session, sink)
            except Exception as error:  # noqa: BLE001 - a sink of a plug-in may raise anything
                failed = TamiasError(f"the sink {sink.text} failed: {error}")
                self.trouble = error if isinstance(error, TamiasError) else failed

    def _deliver_from(self, reader: SegmentReader, session: Session, sink: OutsideSink) -> None:
        around = Surroundings(
            data=self._data,
            session=session,
            sink=sink.number,
            read=reader.read,
            compress=self._compress,
        )
        name, target = split_sink(sink.text)
        open_sink: OpenSink = load("graph_sinks", name)
        with closing(open_sink(target, around)) as place:
            outbox = Outbox(session, sink.number, buckets=self._buckets)
            describe = partial(some_captures, session)
            Deliverer(outbox, place, reader.read, describe=describe).run(self._ending)


def checked(texts: Sequence[str]) -> tuple[str, ...]:
    """The sinks a user named, each once; raises `ConfigError` for one that does not exist."""
    for text in texts:
        name, _ = split_sink(text)
        if name not in _with_the_crawl():
            known = parts("graph_sinks")
            if name not in known:
                there = ", ".join(sorted({*_with_the_crawl(), *known}))
                raise ConfigError(f"there is no sink named '{name}'; there are {there}")
            load("graph_sinks", name)
        elif ":" in text:
            raise ConfigError(f"the sink '{name}' takes no target; it writes under --data")
    return tuple(dict.fromkeys(_in_full(text) for text in texts))


def _in_full(text: str) -> str:
    """The sink with the whole path of its folder: a later run, or the service, may start in another one."""
    name, target = split_sink(text)
    return f"{name}:{Path(target).absolute()}" if target and name.endswith("-files") else text


def outside(session: Session, texts: Sequence[str], buckets: int) -> list[OutsideSink]:
    """The sinks that are fed from the outbox, made known to the database."""
    near = _with_the_crawl()
    named = [text for text in texts if split_sink(text)[0] not in near]
    return [OutsideSink(text, add_sink(session, text, buckets)) for text in named]
