"""`--db`: any PostgreSQL server, named by URL. What goes wrong is told without the password."""

import os
import subprocess
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tamias.database.connect import Database
from tamias.features.embedded import server as programs_of
from tamias.features.embedded.server import server_account
from tamias.model.errors import DatabaseError, DatabaseUnavailable, DataMissing
from tests.messages import saying, unnamed, unsaid
from tests.ports import free_port

PASSWORD = "s3cret-w0rd"
NOWHERE = Path("/nonexistent")


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """A PostgreSQL 16 on the loopback address that asks for a password."""
    programs = programs_of.of_major(16)
    if programs is None:
        pytest.skip("PostgreSQL 16 is not installed")
    folder = tmp_path_factory.mktemp("server")
    enter = server_account(folder).enter(ends_with_parent=True)
    (folder / "password").write_text(PASSWORD)
    made = [
        "-D",
        folder / "pg",
        "-U",
        "boss",
        "--auth=scram-sha-256",
        f"--pwfile={folder / 'password'}",
        "--no-sync",
    ]
    subprocess.run([programs.program("initdb"), *made], check=True, capture_output=True, preexec_fn=enter)
    number = free_port()
    words = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={number}", "-c", "unix_socket_directories="]
    with (folder / "log").open("wb") as log:
        command = [programs.program("postgres"), "-D", folder / "pg", *words]
        server = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=enter)  # noqa: PLW1509 (one thread)
    wait_for(number)
    yield number
    server.terminate()
    server.wait(30)


def wait_for(number):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            psycopg.connect(url(number), connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("the server does not start")


@pytest.fixture
def empty(port):
    """The URL of a new database."""
    name = f"test_{os.urandom(4).hex()}"
    with psycopg.connect(url(port), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return url(port, name)


def url(number, name="postgres", user="boss", password=PASSWORD):
    return f"postgresql://{user}:{password}@127.0.0.1:{number}/{name}"


def refused(address, **words):
    """What the user is told."""
    with pytest.raises(DatabaseError) as told:
        Database(NOWHERE, address, **words)
    sentence = str(told.value)
    assert PASSWORD not in sentence
    assert "\n" not in sentence
    return told.value


def test_a_server_named_by_url_is_used(empty, ask):
    with closing(Database(NOWHERE, empty)) as database, closing(database.session()) as session:
        assert ask(session, "SELECT name FROM crawl ORDER BY crawl") == [("default",), ("watch",)]


def test_a_schema_is_made_once(empty, ask):
    Database(NOWHERE, empty, buckets=4).close()
    with closing(Database(NOWHERE, empty, buckets=8)) as database, closing(database.session()) as session:
        assert ask(session, "SELECT buckets FROM meta") == [(4,)]


def test_options_in_the_url_are_kept(empty, ask):
    address = f"{empty}?options=-c%20work_mem%3D7MB"
    with closing(Database(NOWHERE, address)) as database, closing(database.session()) as session:
        assert ask(session, "SHOW work_mem") == [("7MB",)]


def test_an_empty_database_is_missing_data_unless_it_may_be_made(empty):
    with pytest.raises(DataMissing):
        Database(NOWHERE, empty, create=False)
    with psycopg.connect(empty) as connection:
        assert connection.execute("SELECT FROM pg_namespace WHERE nspname = 'tamias'").fetchone() is None


def test_a_wrong_password_is_told(port):
    told = refused(url(port, password=f"{PASSWORD}x"))
    assert not unsaid(str(told), "boss")


def test_a_database_that_is_not_there_is_told(port):
    assert not unsaid(str(refused(url(port, "absent"))), "absent")


def test_a_server_that_is_not_there_is_told_at_once():
    number = free_port()
    told = refused(url(number))
    assert isinstance(told, DatabaseUnavailable)
    assert not unsaid(str(told), "127.0.0.1", number)


def test_a_user_who_may_not_make_tables_is_told(port, empty):
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    told = refused(empty.replace("boss", "guest"))
    assert unnamed(told, "permission denied for database") == []


@pytest.mark.parametrize(
    "address",
    [
        "not a url",
        "https://example.org/",
        f"host=127.0.0.1 password={PASSWORD}",
        f"postgresql://boss:{PASSWORD}@{PASSWORD}@127.0.0.1/db",
        f"postgresql://boss:{PASSWORD}/{PASSWORD}@127.0.0.1/db",
        f"postgresql://boss:{PASSWORD}%zz@127.0.0.1/db",
        f"postgresql://boss:{PASSWORD}@127.0.0.1/db?nonsense=1",
    ],
)
def test_what_is_no_url_is_told_without_repeating_it(address):
    assert unnamed(refused(address), "--db", "PostgreSQL") == []


@pytest.mark.parametrize("host", ["127.0.0.1:port", "nowhere.invalid"])
def test_an_address_that_leads_nowhere_is_told(host):
    told = refused(f"postgresql://boss:{PASSWORD}@{host}/db")
    assert unnamed(told, " db ", host.partition(":")[0]) == []


def test_a_server_that_comes_back_is_found_again(empty, ask):
    with closing(Database(NOWHERE, empty)) as database, closing(database.session()) as session:
        [(backend,)] = ask(session, "SELECT pg_backend_pid()")
        with psycopg.connect(empty, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [backend])
        assert ask(session, "SELECT pg_backend_pid() <> %s", [backend]) == [(True,)]


def test_what_the_server_refuses_is_one_sentence_and_the_session_goes_on(empty, ask):
    with closing(Database(NOWHERE, empty)) as database, closing(database.session()) as session:
        with pytest.raises(DatabaseError, check=saying("absent")):
            ask(session, "SELECT * FROM absent")
        assert ask(session, "SELECT 1") == [(1,)]
