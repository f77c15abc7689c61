"""The options of every verb, and how results are printed."""

import functools
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice, zip_longest
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tamias.crawl.verbs.run_policy import RunPlace
from tamias.model.errors import ConfigError
from tamias.model.log_lines import configure
from tamias.settings import Settings

if TYPE_CHECKING:
    from tamias.archive.reader.library import ArchiveReader
    from tamias.database.connect import Session


Function = Callable[..., Any]
_WIDEST = 80
_MEASURED_ROWS = 1000


class CommonOptions(RunPlace, frozen=True):
    """The common options: where the data is and how results are printed."""

    json: bool
    verbosity: int

    def command(self, verb: str, *words: str) -> str:
        """Return what to type for a verb on the same data and machine, without the password of a database."""
        from tamias.model.url import without_password

        named = self.db not in {None, os.environ.get("TAMIAS_DB")}
        db = ["--db", without_password(str(self.db))] if named else []
        config = ["--config", str(self.config)] if self.config else []
        return shlex.join(["tamias", verb, "--data", str(self.data), *db, *config, *words])


def common(function: Function) -> Function:
    """Adds the options every verb has; the verb receives them as `place`."""

    @click.option(
        "--data",
        type=click.Path(path_type=Path),
        envvar="TAMIAS_DATA",
        default="tamias-data",
        show_default=True,
        help="Folder for everything that Tamias stores.",
    )
    @click.option("--db", envvar="TAMIAS_DB", help="Use this PostgreSQL server instead of the embedded one.")
    @click.option(
        "--config", type=click.Path(path_type=Path), help="Settings file [default: tamias.toml if present]"
    )
    @click.option("--json", "as_json", is_flag=True, help="Print results as JSON.")
    @click.option(
        "--log", type=click.Choice(["text", "json"]), default="text", help="Format of log lines. [text]"
    )
    @click.option("-q", "--quiet", count=True, help="Print less.")
    @click.option("-v", "--verbose", count=True, help="Print more.")
    @functools.wraps(function)
    def wrapped(
        data: Path,
        db: str | None,
        config: Path | None,
        as_json: bool,
        log: str,
        quiet: int,
        verbose: int,
        **words: Any,
    ) -> Any:
        configure(verbose - quiet, as_json=log == "json")
        config = config or next(filter(Path.exists, [Path("tamias.toml")]), None)
        place = CommonOptions(data, db or None, config, as_json, verbose - quiet)
        return function(place=place, **words)

    return wrapped  # fmt: skip


_METAVARS = {
    "sinks": "NAME[:TARGET]", "resolve": "HOST:ADDRESS", "store": "URL",
    "delay": "DURATION", "max_time": "DURATION", "max_wait": "DURATION",
}  # fmt: skip


class Duration(click.FloatRange):
    """Seconds, or a text such as 5m."""

    name = "duration: write 300 (seconds), 5m, 2h or 1d"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from tamias.schedule.rules import span_in

        seconds = span_in(value) if isinstance(value, str) else None
        return super().convert(value if seconds is None else seconds, param, ctx)


def setting_options(*keys: str) -> Callable[[Function], Function]:
    """Add the flags of settings, as their table describes them; the verb receives their values as `flags`."""

    def add(function: Function) -> Function:
        @functools.wraps(function)
        def wrapped(**words: Any) -> Any:
            values = {key: words.pop(key.partition(".")[2]) for key in keys}
            flags = {key.replace(".", "__"): _given(key, value) for key, value in values.items()}
            return function(flags=flags, **words)

        made: Function = wrapped
        for key in reversed(keys):
            made = _setting_option(key)(made)
        return made

    return add


def _setting_option(key: str) -> Callable[[Function], Function]:
    from msgspec import inspect

    table, name = key.split(".")
    tables = {each.name: each.type for each in msgspec.structs.fields(Settings)}
    field = next(each for each in msgspec.structs.fields(tables[table]) if each.name == name)
    about: Any = inspect.type_info(field.type)
    kinds = getattr(about.type, "types", [about.type])
    kind = next(each for each in kinds if not isinstance(each, inspect.NoneType))
    flag = "sink" if name == "sinks" else name.replace("_", "-")
    type_of, said = _type_of(kind, name), str(about.extra_json_schema["description"])
    shown = f" [{field.default}]" if type_of and field.default is not None else ""
    return click.option(
        f"--{flag}/--no-{flag}" if isinstance(kind, inspect.BoolType) else f"--{flag}",
        name,
        metavar=_METAVARS.get(name),
        default=None,
        multiple=isinstance(kind, inspect.VarTupleType),
        type=type_of,
        help=f"{said[:1].upper()}{said[1:]}.{shown}",
    )


def _type_of(kind: Any, name: str) -> Any:
    """Return the type of a flag: a duration, a range or a choice, None for any other."""
    if values := getattr(kind, "values", None):
        return click.Choice(values)
    if not hasattr(kind, "ge"):
        return None
    whole, time = type(kind).__name__ == "IntType", _METAVARS.get(name) == "DURATION"
    range_of: Any = Duration if time else click.IntRange if whole else click.FloatRange
    return range_of(kind.ge if kind.gt is None else kind.gt, kind.le, min_open=kind.gt is not None)


def _given(key: str, value: Any) -> Any:
    """Return the value of a flag; an empty text takes away what an earlier run named."""
    if isinstance(value, tuple):
        return tuple(each for each in value if each) if value else None
    if key == "archive.store" and value and "://" not in value:
        return str(Path(value).absolute())
    return value


def frontier_token(file: Path | None) -> str | None:
    """Return the token of a frontier service: of a file, else of the environment."""
    if file is None:
        return os.environ.get("TAMIAS_TOKEN") or None
    try:
        if token := file.read_text(encoding="utf-8").strip():
            return token
    except OSError as error:
        raise ConfigError(f"cannot read the token in {file}: {error.strerror}") from error
    raise ConfigError(f"the token file {file} is empty")


def say(line: str = "") -> None:
    """A result, to stdout; text from outside cannot steer the terminal."""
    click.echo(printable(line))


def say_json(value: Any) -> None:
    """Print a JSON document to stdout."""
    click.echo(msgspec.json.encode(value, enc_hook=str))


def print_result(place: CommonOptions, value: Any, lines: Iterable[str]) -> None:
    """Print a result: the value as JSON if that is wanted, the lines otherwise."""
    if place.json:
        say_json(value)
        return
    for line in lines:
        say(line)


def print_table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows as they come, in columns as wide as in the first of them."""
    lines = ([printable(cell) for cell in row] for row in rows)
    first = [*islice(lines, _MEASURED_ROWS)]
    widths = [min(_WIDEST, max(map(len, column))) for column in zip_longest(*first, fillvalue="")]
    for line in chain(first, lines):
        say("  ".join(map(str.ljust, line, widths)).rstrip())


def count_of(count: int, what: str) -> str:
    """Return a number of things, such as `1 URL` and `1,234 URLs`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def queue_units(queue: str) -> str:
    """Return the word for things that have a queue each, by the setting `frontier.queue`."""
    return {"ip": "addresses"}.get(queue, f"{queue}s")


def duration(seconds: float) -> str:
    """Return a time in its largest unit.

    >>> duration(90_000), duration(7200), duration(0.2)
    ('1 day', '2 hours', '0 seconds')
    """
    units = (("day", 86_400), ("hour", 3_600), ("minute", 60))
    unit, length = next((each for each in units if seconds >= each[1]), ("second", 1))
    return count_of(round(seconds / length), unit)


def size(octets: float) -> str:
    """Return a number of bytes in its largest unit.

    >>> size(999), size(1536), size(3 << 30)
    ('999 B', '1.5 KiB', '3.0 GiB')
    """
    power = min(int(log(max(octets, 1), 1024)), 4)
    return f"{octets / 1024**power:.1f} {'KMGT'[power - 1]}iB" if power else f"{octets:.0f} B"


def printable(text: str) -> str:
    """The text with control characters and direction marks made visible."""
    return "".join(each if each.isprintable() or each in "\n\t" else f"\\x{ord(each):02x}" for each in text)


def start_database_early(place: CommonOptions) -> None:
    """Starts the server of existing data while the verb imports what will ask it; held until the end."""
    from tamias.database.embedded_server import EarlyStart

    if place.db is None:
        click.get_current_context().call_on_close(EarlyStart(place.data).close)


@contextmanager
def session_at(place: CommonOptions) -> "Iterator[Session]":
    """Open a session of the database, which must exist."""
    from tamias.database.connect import Database

    with (
        closing(Database(place.data, place.db, create=False)) as database,
        closing(database.session()) as session,
    ):
        yield session


def archive_at(place: CommonOptions) -> "ArchiveReader":
    """The archive, for reading."""
    from tamias.archive.reader.library import ArchiveReader

    names = frozenset(place.settings().settings.filters.session_names)
    return ArchiveReader(place.db or place.data, data=place.data, session_names=names)
