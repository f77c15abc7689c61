"""The protocol over standard input and output: one message a line, until the input ends."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from tamias.database.connect import Database
from tamias.features.catalogue.catalogue import Catalogue
from tamias.features.mcp.http import LARGEST_MESSAGE, answer_bytes
from tamias.features.mcp.tools import SparqlTool, Tool
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.model.errors import TamiasError
from tamias.settings import Settings

_LOG = logging.getLogger("tamias.mcp")
_PATIENCE_SECONDS = 20.0
"""A call waits so long for a database that is away."""


class LazyArchive:
    """An archive that tools read, opened when it is first needed."""

    def __init__(self, data: Path, db: str | None, settings: Settings) -> None:
        self._data = data
        self._settings = settings
        self._stack = ExitStack()
        self._database = self._stack.enter_context(
            closing(Database(data, db, create=False, patience=_PATIENCE_SECONDS))
        )

    async def run(self, tool: Tool) -> str:
        """Run a tool and return its result. Raises `TamiasError`."""
        try:
            if isinstance(tool, SparqlTool):
                return tool.ask(self._catalogue.ask)
            return tool.answer(self._session, owner=True)  # whoever has the files is their owner
        except TamiasError:
            raise
        except Exception as error:
            _LOG.exception("the tool %s failed", tool.name)
            raise TamiasError(f"{tool.name} failed: {error}") from error

    def close(self) -> None:
        """Lets go of the database and of the catalogue."""
        self._stack.close()

    @cached_property
    def _session(self) -> ServiceSession:
        db = ServiceSession(self._database, self._data, self._settings)
        self._stack.callback(db.session.close)
        return db

    @cached_property
    def _catalogue(self) -> Catalogue:
        """Brought up to now, once."""
        catalogue = self._stack.enter_context(Catalogue(self._data, self._settings.serve, self._database))
        if catalogue.is_filled_by_us:
            with (
                closing(self._database.session()) as session,
                closing(catalogue.refresher(session)) as refresher,
            ):
                refresher.round()
        return catalogue


def converse(reading: LazyArchive, lines: BinaryIO, out: BinaryIO) -> None:
    """Answers line after line."""
    with asyncio.Runner() as runner:
        for line in _messages(lines):
            answered = runner.run(answer_bytes(line, reading.run))
            if answered is not None:
                out.write(answered + b"\n")
                out.flush()


def _messages(lines: BinaryIO) -> Iterator[bytes]:
    """Yield the lines that are not empty; for one that is too long only `{`, which is no message."""
    while line := lines.readline(LARGEST_MESSAGE):
        whole = line
        while line and not line.endswith(b"\n") and len(line) == LARGEST_MESSAGE:
            line, whole = lines.readline(LARGEST_MESSAGE), b"{"
        if whole.strip():
            yield whole
