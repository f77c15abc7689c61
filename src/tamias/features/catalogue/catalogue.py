"""The catalogue of a data directory as its users see it: asked, followed, made anew."""

import logging
import re
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cached_property
from math import inf
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Self, cast

import msgspec

from tamias.archive.moments import Moment
from tamias.database.connect import Database, Session
from tamias.database.disk import opened, try_alone
from tamias.features.catalogue.errors import AnswerTooLarge, QueryRefused, QueryTooLong, StoreError
from tamias.features.catalogue.exchange import Answer, Limits, SparqlClient, too_long
from tamias.features.catalogue.fetch_queries import NeededFetches, find_needed_fetches, write_fetches
from tamias.features.catalogue.past import PastState, PastStates, names_versions
from tamias.features.catalogue.query_text import asks_elsewhere, rewrite_query
from tamias.features.catalogue.refresh import OtherFilling, OwnFilling, Refresher
from tamias.features.catalogue.store.local_store import LocalStore, RunningQuery
from tamias.features.catalogue.store.messages import QueryOrder
from tamias.features.dcat.terms import PREFIXES, CatalogueBases, bases_of
from tamias.features.graph_stores.sparql_sink import checked_address
from tamias.model.errors import TamiasError, UsageError
from tamias.settings import ServeSettings, Settings

_DOCUMENT_SECONDS = 2.0
"""So long are documents of crawls brought before new versions of datasets have their turn again."""
_MANY_GRAPHS = 100
_MANY_SECONDS = 3.0
"""A store that is written in fewer and larger lots takes less time for each graph: so long after the
beginning of a round that brought many the next one begins."""
_QUERY_SECONDS = 10.0
"""So long after a query the news are brought every second."""
_UNASKED_SECONDS = 10.0
"""So long after the beginning of a round the next one begins while nobody asks."""
_CATCH_UP_SECONDS = 5.0
"""So long a query after a while without any waits for the news at most."""
YOUNGER_SECONDS = 10.0
"""How often one that is not the eldest looks if it is."""
_LOG = logging.getLogger("tamias.catalogue")
_PLACE = re.compile(r"\berror at (\d+):(\d+): ")
_TOKEN = re.compile(r"""\[(?:'[^']*'|[^\]'])*\]|"(?:\\.|[^"\\])*"|[^,\[\]"]*[^,\[\]"\s]""", re.DOTALL)
"""Of what a parser expected: a set of characters, a text in quotes, a word or a remark."""
_PATTERN_TOKENS = {"[_]", "BIND", "FILTER", "GRAPH", "LATERAL", "MINUS", "OPTIONAL", "SERVICE", "VALUES"}
"""Tokens that the parser expects where a pattern cannot continue, whatever is missing."""
_MOST_TOKENS = 6
_REMARKS = {"Prefix not found": "a prefix is not declared; begin with 'PREFIX name: <namespace>'"}
_USUAL = ServeSettings()
PROLOGUE = " ".join(f"PREFIX {name}: <{space}>" for name, space in PREFIXES.items()) + " "
"""On one line, so that lines are counted as the user counts them; a query may declare them otherwise."""


class Catalogue:
    """Asked by any number of threads. The server starts when it is first needed."""

    def __init__(
        self, data: Path, settings: ServeSettings = _USUAL, database: Database | None = None
    ) -> None:
        """The database is needed for queries about fetches, which are not in the store.

        Raises `ConfigError` for a server whose address cannot be one.
        """
        self.data = data
        self._database = database
        self.settings = settings
        self._filled_at = checked_address(settings.sparql_update) if settings.sparql_update else None
        self.local: LocalStore | None = None
        """The store in the data directory, unless another server is used."""
        if not settings.sparql:
            self.local = LocalStore(data, seconds=settings.sparql_seconds, guarded=settings.sparql_guard)
        self._client = SparqlClient(checked_address(settings.sparql) if settings.sparql else "")
        self.past: PastStates | None = None
        """What is asked of the past, if somebody has given it."""
        self.follower: CatalogueFollower | None = None
        """Who keeps it up in this process."""

    def ask(
        self,
        query: str,
        accept: str,
        graphs: dict[str, list[str]] | None = None,
        asking: RunningQuery | None = None,
        at: Moment | None = None,
    ) -> Answer:
        """The whole answer to a query, in one of the media types accepted. Raises `StoreError`.

        With a time, of the graphs as they were then. By `asking` another thread may give the query up.
        """
        try:
            if self.past is None:
                return self._ask(query, accept, graphs, asking)
            if at is not None:
                with self.past.at(at) as state:
                    return self._ask(query, accept, graphs, asking, state)
            if names := names_versions(query, graphs or {}):
                with self.past.of_graphs(names, self._ask_for_triples) as state:
                    return self._ask(query, accept, graphs, asking, state)
            return self._ask(query, accept, graphs, asking)
        except QueryRefused as error:
            raise QueryRefused(in_the_users_text(str(error)), error.status) from error

    def _ask_for_triples(self, query: str) -> bytes:
        with closing(self._ask(query, "application/n-triples", None, None).content) as content:
            return content.read()

    def _ask(
        self,
        query: str,
        accept: str,
        graphs: dict[str, list[str]] | None,
        asking: RunningQuery | None,
        past: PastState | None = None,
    ) -> Answer:
        limits = Limits(self.settings.sparql_seconds, self.settings.sparql_bytes)
        text = PROLOGUE + rewrite_query(query)
        if asks_elsewhere(query):
            raise QueryRefused("SERVICE is not supported: other servers are not queried")
        order = QueryOrder(text, accept, graphs or {}, limits.bytes)
        if past is not None:
            return self._ask_past(order, limits, asking, past)
        if self.local is None:
            return self._client.ask(text, accept, limits, graphs)
        if self.follower is not None:
            self.follower.catch_up()
        try:
            fetches = find_needed_fetches(text, order.graphs)
        except QueryRefused:
            self._check_syntax(order, limits, asking)
            raise
        if fetches is not None:
            return self._ask_of(fetches, order, limits, asking)
        return self.local.ask(order, limits, asking)

    def _ask_past(
        self, order: QueryOrder, limits: Limits, asking: RunningQuery | None, past: PastState
    ) -> Answer:
        if find_needed_fetches(order.query, order.graphs) is not None:
            raise QueryRefused("fetches are not queried as of a time: restrict them by prov:startedAtTime")
        order = msgspec.structs.replace(order, past=past.key, size=past.size, folder=past.folder)
        return self._store_of_past.ask(order, limits, asking, past.file.fileno())

    @cached_property
    def _store_of_past(self) -> LocalStore:
        """Return the store whose processes answer queries to the past, also where another server is used."""
        return self.local or LocalStore(
            self.data, seconds=self.settings.sparql_seconds, guarded=self.settings.sparql_guard
        )

    def _ask_of(
        self, fetches: NeededFetches, order: QueryOrder, limits: Limits, asking: RunningQuery | None
    ) -> Answer:
        assert self.local is not None
        if self._database is None:
            raise QueryRefused("there is no database to read the fetches from")
        deadline = time.monotonic() + limits.seconds

        def seconds_left() -> float:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if asking is not None:
                asking.check()
            return left

        with TemporaryFile() as file:
            try:
                write_fetches(self._database, fetches, cast("BinaryIO", file), seconds_left)
            except TimeoutError as error:
                raise too_long(limits) from error
            return self.local.ask(order, limits, asking, file.fileno())

    def _check_syntax(self, order: QueryOrder, limits: Limits, asking: RunningQuery | None) -> None:
        """Raises `QueryRefused` for what is no query: asked of an empty graph, by a process with limits."""
        assert self.local is not None
        order = msgspec.structs.replace(order, accept="*/*")
        with TemporaryFile() as empty, suppress(QueryTooLong, AnswerTooLarge):
            self.local.ask(order, limits, asking, empty.fileno()).content.close()

    def refresher(
        self,
        session: Session,
        bases: CatalogueBases | None = None,
        is_ending: Callable[[], bool] = lambda: False,
    ) -> Refresher:
        """Return what brings changes to the store, for one thread. Raises `UsageError` if others fill it.

        By default IRIs begin as they do in the store, or as the settings say where it is empty.
        """
        usual = bases_of(self.settings)
        if self.local is not None:
            return Refresher(session, self.data, OwnFilling(self.local, is_ending), usual, bases)
        if self._filled_at is None:
            raise UsageError(
                "the SPARQL server is filled by others; [serve] sparql_update says where to write"
            )
        return Refresher(session, self.data, OtherFilling(self._filled_at), usual, bases)

    @property
    def is_filled_by_us(self) -> bool:
        """Return whether changes are brought to it."""
        return self.local is not None or self._filled_at is not None

    def close(self) -> None:
        """Lets go of the server. May be called twice."""
        self._client.close()
        if self.past is not None:
            self.past.close()
        for store in (self.local, vars(self).get("_store_of_past")):
            if store is not None:
                store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class CatalogueFollower:
    """A thread that keeps a catalogue up with the database until it is closed.

    Several services may follow for one catalogue; the eldest of them says what its IRIs begin with.
    While nobody asks it rests between rounds, and a query wakes it.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        database: Database,
        bases: CatalogueBases | None = None,
        seconds: float = 1.0,
        patience: float = 0.0,
    ) -> None:
        """Take `patience` as `Refresher.round` does."""
        self._catalogue = catalogue
        self._patience = patience
        self._database = database
        self._bases = bases
        self._seconds = self._pause = seconds
        self._eldest = catalogue.data / "catalogue" / "eldest.lock"
        self._ending = threading.Event()
        self._changed = threading.Condition()
        """Of the following three."""
        self._queried_at = -inf
        self._is_resting = False
        self._rounds = 0
        self._thread = threading.Thread(target=self._follow, name="catalogue", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._catalogue.follower = self
        self._thread.start()

    def close(self) -> None:
        """Ends after what is under way."""
        self._ending.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def catch_up(self) -> None:
        """Note a query; if this rests, wait a little until what was committed is brought."""
        with self._changed:
            self._queried_at = time.monotonic()
            if not self._is_resting:
                return
            self._is_resting, rounds = False, self._rounds
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._rounds > rounds or self._ending.is_set(), _CATCH_UP_SECONDS)

    def _follow(self) -> None:
        self._eldest.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        with opened(self._eldest) as eldest:
            while not self._ending.wait(self._pause):
                try:
                    self._follow_as(eldest=try_alone(eldest))
                except TamiasError as error:
                    if self._ending.is_set():
                        return
                    _LOG.warning("the catalogue does not follow: %s", error)
                    self._pause = min(60.0, self._pause * 2)

    def _follow_as(self, *, eldest: bool) -> None:
        """Follow until it is closed or something fails, or for a while."""
        bases, end = (self._bases, inf) if eldest else (None, time.monotonic() + YOUNGER_SECONDS)
        with (
            closing(self._database.session()) as session,
            closing(self._catalogue.refresher(session, bases, self._ending.is_set)) as refresher,
        ):
            while not self._ending.is_set() and time.monotonic() < end:
                turn = DocumentTurn(self._ending)
                try:
                    written = refresher.round(self._patience, turn.is_over)
                finally:
                    with self._changed:
                        self._rounds += 1
                        self._changed.notify_all()
                self._pause = self._seconds
                if turn.was_cut or not self._rest(turn.began):
                    left = turn.began + _MANY_SECONDS - time.monotonic() if written > _MANY_GRAPHS else 0.0
                    self._ending.wait(max(self._pause, left))

    def _rest(self, began: float) -> bool:
        """Waits longer, until somebody asks; False where somebody has just asked, or may ask elsewhere."""
        with self._changed:
            if self._catalogue.local is None or time.monotonic() - self._queried_at < _QUERY_SECONDS:
                return False
            self._is_resting = True
            self._changed.wait_for(
                lambda: not self._is_resting or self._ending.is_set(),
                max(self._seconds, began + _UNASKED_SECONDS - time.monotonic()),
            )
            self._is_resting = False
        return True


class DocumentTurn:
    """A round's share of time for documents of crawls; the rest is brought in the next one."""

    def __init__(self, ending: threading.Event) -> None:
        self._ending = ending
        self._until: float | None = None
        self.began = time.monotonic()
        self.was_cut = False

    def is_over(self) -> bool:
        """Return whether documents have had their share of time."""
        now = time.monotonic()
        self._until = self._until or now + _DOCUMENT_SECONDS
        self.was_cut = self._ending.is_set() or now > self._until
        return self.was_cut


def rebuild(database: Database, data: Path, settings: Settings) -> int:
    """Make the catalogue again; return how many crawled documents are in it. Raises `StoreError`."""
    with (
        Catalogue(data, settings.serve) as catalogue,
        closing(database.session()) as session,
        closing(catalogue.refresher(session, bases_of(settings.serve))) as refresher,
    ):
        try:
            return refresher.rebuild()
        except StoreError:
            if catalogue.local is None:
                raise
            catalogue.local.discard()  # it is damaged, and has nothing that cannot be made again
            return refresher.rebuild()


def erase(database: Database, data: Path, settings: Settings) -> list[str]:
    """Make the store again without what was forgotten; return what remains elsewhere."""
    if not (data / "catalogue" / "store").exists():
        return []
    with Catalogue(data, settings.serve) as catalogue, closing(database.session()) as session:
        if not catalogue.is_filled_by_us:
            return ["the SPARQL server is filled by others; remove the graphs there"]
        with closing(catalogue.refresher(session)) as refresher:
            refresher.round()
            if catalogue.local is not None:
                refresher.rebuild()
    return []


def in_the_users_text(message: str) -> str:
    """A syntax error in a line: its place, without the prefixes that stand before what the user wrote.

    >>> in_the_users_text(f"error at 1:{len(PROLOGUE) + 10}: expected CONSTRUCT")
    'not valid SPARQL, near line 1, column 1: expected CONSTRUCT or another keyword'
    >>> in_the_users_text("error at 2:9: expected one of Prefix not found, ['%'], ['A' ..= 'Z' |\\n'a']")
    "not valid SPARQL, near line 2, column 9: a prefix is not declared; begin with 'PREFIX name: <namespace>'"
    >>> in_the_users_text("error at 2:20: expected one of LATERAL, SERVICE, [_]")
    'not valid SPARQL, near line 2, column 20: a triple pattern is incomplete, or a keyword is misspelt'
    """
    found = _PLACE.search(message)
    if found is None:
        return message
    line, column = int(found[1]), int(found[2])
    listed = message[found.end() :].removeprefix("expected ").removeprefix("one of ")
    tokens = [each.strip() for each in _TOKEN.findall(listed)]
    if len(tokens) == 1 and tokens[0].isupper():
        # The longest keyword of those that may stand here, and the place after it.
        column -= len(tokens[0])
        tokens.append("another keyword")
    if line == 1:
        column = max(1, column - len(PROLOGUE))
    place = f"not valid SPARQL, near line {line}, column {column}: "
    return message[: found.start()] + place + _expected(tokens)


def _expected(tokens: list[str]) -> str:
    """Return what a parser expected: some tokens, without sets of characters, or its own remark."""
    remarks = [_REMARKS.get(each, each) for each in tokens if each[0].isupper() and " " in each]
    if remarks:
        return "; ".join(remarks)
    if {*tokens, "[_]"} <= _PATTERN_TOKENS:
        return "a triple pattern is incomplete, or a keyword is misspelt"
    words = sorted((each for each in tokens if each[0] != "["), key=lambda each: not each[0].isalpha())
    if len(words) > _MOST_TOKENS:
        words = [*words[:_MOST_TOKENS], "something else"]
    if not words:
        return "something is missing or misspelt"
    return f"expected {', '.join(words[:-1])} or {words[-1]}" if words[1:] else f"expected {words[0]}"
