"""`tamias doctor`: looks at the machine and says what is wrong with it, and what to do."""

import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click
import msgspec

from tamias.cli.console.options import CommonOptions, common, count_of, print_result
from tamias.model.errors import DataMissing, TamiasError

_GIGABYTE = 1 << 30


class MachineCheck(msgspec.Struct, frozen=True):
    """Result of a check."""

    name: str
    ok: bool
    detail: str = msgspec.field(name="told")


@click.command()
@click.option("--repair", is_flag=True, help="Make due now what a wrong clock deferred for years.")
@common
def command(place: CommonOptions, *, repair: bool) -> int:
    """Checks Python, the libraries, the database, the clock, the disk and the limits of this machine.

    Example: tamias doctor --data ./tamias-data
    """
    checks = [
        _check("python", lambda: f"{sys.version.split()[0]} at {sys.executable}"),
        _check("libraries", _libraries),
        _check("settings", lambda: _settings(place)),
        _check("disk", lambda: _disk(place.data)),
        _check("open files", _open_files),
        _check("sandbox", _sandbox),
        _check("database", lambda: _database(place)),
        _check("clock", lambda: _clock(place, repair=repair)),
    ]
    print_result(
        place, checks, (f"{'ok ' if each.ok else 'BAD'}  {each.name:12} {each.detail}" for each in checks)
    )
    return 0 if all(each.ok for each in checks) else 1


def _check(name: str, look: Callable[[], str]) -> MachineCheck:
    try:
        return MachineCheck(name, True, look())
    except TamiasError as error:
        return MachineCheck(name, False, str(error))
    except (OSError, ImportError) as error:
        return MachineCheck(name, False, f"{type(error).__name__}: {error}")


def _libraries() -> str:
    import psycopg
    import pycurl
    import pyoxigraph

    return f"{pycurl.version.split()[1]}, psycopg {psycopg.__version__}, pyoxigraph {pyoxigraph.__version__}"


def _settings(place: CommonOptions) -> str:
    changed = {key: origin for key, origin in place.settings().origins.items() if origin != "default"}
    return ", ".join(f"{key} from {origin}" for key, origin in changed.items()) or "all have their defaults"


def _disk(data: Path) -> str:
    place = data.absolute()
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        raise TamiasError(f"{place} cannot be written to; choose another --data")
    free = shutil.disk_usage(place).free
    if free < _GIGABYTE:
        raise TamiasError(f"only {free / _GIGABYTE:.1f} GB free at {place}; free some space")
    return f"{free / _GIGABYTE:.0f} GB free at {place}"


def _open_files() -> str:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1024:
        raise TamiasError(f"only {hard} files may be open; raise it with 'ulimit -n 4096'")
    return f"{soft} now, up to {hard}"


def _sandbox() -> str:
    from tamias.crawl.sandbox.walls import WALLS, missing_walls

    missing = missing_walls()
    standing = [f"{name} ({about})" for name, about in WALLS.items() if name not in missing]
    text = f"walls: {', '.join(standing)}; limits of memory, time and sizes"
    if not missing:
        return text
    refused = ", ".join(f"{name} ({WALLS[name]})" for name in missing)
    return (
        f"{text}; MISSING, because this system refuses them: {refused}."
        " Allow user namespaces, or use a kernel of 5.13 or later with Landlock and seccomp"
    )


def _database(place: CommonOptions) -> str:
    from tamias.database.connect import Database
    from tamias.database.roles import powers, trouble

    with tempfile.TemporaryDirectory(prefix="tamias-doctor-", ignore_cleanup_errors=True) as trial:
        data = place.data if (place.data / "pg").is_dir() else Path(trial)
        database = Database(data, place.db, create=place.db is None, patience=5)
        try:
            session = database.session()
            version = session.fetch_one(b"SHOW server_version")
            rights = session.transact(trouble) or "workers and services have roles of their own"
            held = session.transact(powers)
            session.close()
            open_to = database.embedded.lets_in_without_password() if database.embedded else []
        finally:
            database.close()
    kind = "server at --db" if place.db else "embedded"
    text = f"PostgreSQL {version[0] if version else '?'}, {kind}, starts and answers; {rights}"
    if not (held or open_to):
        password = "" if place.db else ", known by its password"
        return f"{text}; wall: login (an ordinary owner{password}: no superuser, programs or files)"
    missing = [f"the user {power}" for power in held] + [f"{user} needs no password" for user in open_to]
    text = f"{text}; wall MISSING: login ({', '.join(missing)})"
    if place.db:
        return f"{text}. Let the user own its database and nothing else"
    raise TamiasError(f"{text}. Stop every process that uses {data}: the next start mends it")


def _clock(place: CommonOptions, *, repair: bool) -> str:
    """Return what the database's clock has written; a jump ahead and back leaves times that never come."""
    from tamias.database.connect import Database
    from tamias.frontier.due import count_far_times, mend_far_times

    longest = place.settings().settings.schedule.max_interval
    try:
        database = Database(place.data, place.db, create=False, patience=5)
    except DataMissing:
        return "there are no data that could have wrong times"
    with closing(database), closing(database.session()) as session:
        far = count_far_times(session, longest)
        if not any(far):
            return "no lease or visit is too far in the future"
        hosts, urls, records = map(count_of, far, ("host", "URL", "record"))
        found = f"{hosts} leased or waiting for days, {urls} due too late, {records} from the future"
        if not repair:
            raise TamiasError(f"{found}: a clock was wrong; 'tamias doctor --repair' makes them due now")
        mend_far_times(session, longest)
        return f"{found}: due now"
