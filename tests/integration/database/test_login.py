"""The login to the embedded database: an ordinary owner with a password, also in data of earlier versions."""

import os
import select
import shutil
import signal
import stat
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict

from tamias.database.connect import Database
from tamias.database.migrate import migrate, migrations
from tamias.database.roles import Role, powers, ready_roles, trouble
from tamias.features.embedded import server
from tamias.features.embedded.server import Server, server_account
from tamias.features.strategy.build import ROLE
from tamias.model.errors import DataInUse

ESCAPES = {
    "a program is run": "COPY (SELECT 1) TO PROGRAM 'touch {proof}'",
    "a program is read": "COPY crawl (name) FROM PROGRAM 'id'",
    "a file is written": "COPY (SELECT 1) TO '{proof}'",
    "a file is copied": "COPY crawl (name) FROM '/etc/passwd'",
    "a file is read": "SELECT pg_read_file('/etc/passwd')",
    "a file of the cluster is read": "SELECT pg_read_binary_file('pg_hba.conf')",
    "a folder is listed": "SELECT pg_ls_dir('/')",
    "a file becomes a large object": "SELECT lo_import('/etc/passwd')",
    "a superuser is made": "CREATE ROLE boss SUPERUSER",
    "a role is made": "CREATE ROLE boss",
    "the owner becomes a superuser": "ALTER ROLE tamias_owner SUPERUSER",
    "the owner may make roles": "ALTER ROLE tamias_owner CREATEROLE",
    "the owner may run programs": "GRANT pg_execute_server_program TO tamias_owner",
    "the superuser may log in": "ALTER ROLE tamias LOGIN PASSWORD 'known'",
    "the superuser's role is taken": "SET ROLE tamias",
    "the superuser's session is taken": "SET SESSION AUTHORIZATION tamias",
    "a setting of the server is changed": "ALTER SYSTEM SET log_statement = 'all'",
    "a library is loaded": "LOAD '/tmp/any.so'",
    "a function in C is made": "CREATE FUNCTION another() RETURNS int LANGUAGE c AS '/tmp/any.so', 'any'",
    "the catalogue is changed": "UPDATE pg_catalog.pg_authid SET rolsuper = true",
    "verifiers are read": "SELECT rolpassword FROM pg_catalog.pg_authid",
    "a database is made": "CREATE DATABASE another",
    "triggers are passed over": "SET session_replication_role = replica",
    "who may log in is read": "SELECT * FROM pg_hba_file_rules",
    "the log of changes is read": "SELECT pg_create_physical_replication_slot('slot')",
}
OTHERS = """
SELECT it.oid::regclass::text FROM pg_class AS it
WHERE it.oid >= 16384 AND it.relowner <> 'tamias_owner'::regrole
UNION ALL
SELECT it.oid::regprocedure::text FROM pg_proc AS it
WHERE it.oid >= 16384 AND it.proowner <> 'tamias_owner'::regrole
UNION ALL
SELECT it.oid::regtype::text FROM pg_type AS it
WHERE it.oid >= 16384 AND it.typowner <> 'tamias_owner'::regrole
UNION ALL
SELECT it.nspname::text FROM pg_namespace AS it
WHERE it.oid >= 16384 AND it.nspowner <> 'tamias_owner'::regrole
"""
TABLES = "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = 'tamias' ORDER BY tablename"


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A database whose statements fail, and leave nothing."""
    with closing(Database(tmp_path_factory.mktemp("login"))) as database:
        yield database


@pytest.fixture
def logged_in(opened):
    """A connection as the product has it."""
    address = opened.embedded.address()
    with closing(psycopg.connect(address, autocommit=True, options="-c search_path=tamias")) as connection:
        yield connection


def test_the_login_does_not_get_out_of_its_database(logged_in, tmp_path):
    proof = tmp_path / "proof"
    tmp_path.chmod(0o777)
    said = {}
    for escape, statement in ESCAPES.items():
        try:
            logged_in.execute(statement.format(proof=proof))
        except pg.InsufficientPrivilege:
            said[escape] = "refused"
        except psycopg.Error as error:
            said[escape] = str(error)
        else:
            said[escape] = "done"
    assert said == dict.fromkeys(ESCAPES, "refused")
    assert not proof.exists()


@pytest.mark.parametrize("user", ["tamias", "tamias_owner", "tamias_worker", "postgres", "root", "nobody"])
@pytest.mark.parametrize("password", ["no", "a wrong", "the owner's"])
def test_nobody_but_the_owner_with_its_password_gets_in(opened, user, password):
    place = {**conninfo_to_dict(opened.embedded.address()), "user": user}
    known = Path(place.pop("passfile")).read_text().strip().rpartition(":")[2]
    place["password"] = {"no": "", "a wrong": "0" * len(known), "the owner's": known}[password]
    if (user, password) == ("tamias_owner", "the owner's"):
        psycopg.connect(**place, passfile="/nonexistent").close()
        return
    with pytest.raises(psycopg.OperationalError, match=r"password|pg_hba"):
        psycopg.connect(**place, passfile="/nonexistent")


@pytest.mark.parametrize("where", [{"dbname": "template1"}, {"replication": "true"}])
def test_the_owner_gets_in_at_its_database_only(opened, where):
    with pytest.raises(psycopg.OperationalError, match=r"no pg_hba\.conf entry"):
        psycopg.connect(opened.embedded.address(), **where)


def test_other_passwords_in_the_environment_do_no_harm(place, tmp_path):
    other = tmp_path / "pgpass"
    other.write_text("*:*:*:*:other\n")
    other.chmod(0o600)
    assert place.user(env={"PGPASSWORD": "other", "PGPASSFILE": str(other)}).opened == "ready"


def test_the_password_is_its_users_alone_and_is_not_in_a_log(place):
    place.user().end()
    place.wait_until_nothing_runs()
    file = place.path / "pg" / "password"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    password = file.read_text().strip().rpartition(":")[2]
    assert not [path for path in (place.path / "log").iterdir() if password in path.read_text()]


def test_every_role_that_something_acts_as_is_there(opened):
    with closing(opened.session()) as session:
        assert session.transact(trouble) is None
        for role in (*Role, ROLE):
            session.transact(lambda cursor, role=role: cursor.execute(f"SET LOCAL ROLE {role}"))


def test_a_wall_that_was_taken_down_is_noticed_and_stands_again_at_the_next_start(place):
    with closing(Database(place.path)) as database:
        assert database.embedded.lets_in_without_password() == []
        allowed = cluster_of(place) / "pg_hba.conf"
        stood = allowed.read_text()
        allowed.write_text("local all all trust\n")
        os.kill(place.running().server_pid, signal.SIGHUP)
        place.wait_until(lambda: database.embedded.lets_in_without_password() == ["tamias_owner"])
    place.wait_until_nothing_runs()
    assert place.user().opened == "ready"
    assert allowed.read_text() == stood


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_text("*:*:*:*:short"), None])
def test_a_password_that_is_lost_or_open_to_others_is_no_obstacle(place, damage):
    file = place.path / "pg" / "password"
    file.chmod(0o644)
    if damage is not None:
        damage(file)
    assert place.user().opened == "ready"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def cluster_of(place):
    [cluster] = [path for path in (place.path / "pg").iterdir() if path.name.isdigit()]
    return cluster


def make_as_before(data, programs, upto=None):
    """A data directory as earlier versions made it: they logged in as the superuser, without a password."""
    folder = data / "pg"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "socket").mkdir(mode=0o700)
    account = server_account(folder)
    words = ["--encoding=UTF8", "--locale=C", "--auth=trust", "--data-checksums", "--no-sync"]
    command = [programs.program("initdb"), "-D", str(folder / str(programs.major)), "-U", "tamias", *words]
    subprocess.run(command, check=True, capture_output=True, preexec_fn=account.enter())
    server = Server(folder / str(programs.major), programs, account, data / "log")
    server.start()
    try:
        place = {"host": str(folder / "socket"), "user": "tamias", "dbname": "postgres"}
        with psycopg.connect(**place, autocommit=True, options="-c search_path=tamias,public") as connection:
            migrate(connection, create=True, buckets=3, upto=upto)
            if upto is None:
                with connection.transaction(), connection.cursor(binary=True) as cursor:
                    assert not ready_roles(cursor).lacking
            connection.execute("INSERT INTO crawl (name) VALUES ('kept')")
            connection.execute(
                "CREATE SCHEMA strategy_1; CREATE FUNCTION strategy_1.f() RETURNS int RETURN 1"
            )
            connection.execute(
                "CREATE TYPE strategy_1.kind AS ENUM ('one'); CREATE SEQUENCE strategy_1.number"
            )
            rows = table_rows(connection)
    finally:
        server.stop()
    (data / "log").unlink()
    return rows


def table_rows(connection):
    return {
        name: sorted(map(repr, connection.execute(f"SELECT * FROM tamias.{name}").fetchall()))
        for (name,) in connection.execute(TABLES).fetchall()
    }


@pytest.fixture(scope="module")
def made_before(tmp_path_factory):
    """Such a data directory, to be copied, and its rows."""
    data = tmp_path_factory.mktemp("before") / "data"
    return data, make_as_before(data, server.newest())


@pytest.fixture
def old_place(new_place, made_before):
    shutil.copytree(made_before[0], new_place.path)
    new_place.rows = made_before[1]
    return new_place


def assert_converted(place):
    """All rows are there and the owner's, and the walls stand."""
    with closing(Database(place.path)) as database, closing(database.session()) as session:
        assert database.embedded.lets_in_without_password() == []
        assert session.transact(powers) == []
        assert session.transact(trouble) is None
        assert session.transact(lambda cursor: cursor.execute(OTHERS).fetchall()) == []
        found = session.transact(lambda cursor: table_rows(cursor.connection))
    assert found == place.rows


def test_data_of_an_earlier_version_is_converted_with_all_its_rows(old_place):
    assert_converted(old_place)


def test_after_the_conversion_the_schema_can_be_brought_up_to_date(new_place):
    make_as_before(new_place.path, server.newest(), upto=migrations()[-2].number)
    with closing(Database(new_place.path)) as database, closing(database.session()) as session:
        assert session.transact(trouble) is None
        found = session.transact(lambda cursor: cursor.execute("SELECT schema_version FROM meta").fetchone())
    assert found == (migrations()[-1].number,)


def test_data_of_an_earlier_version_and_an_older_postgresql_is_upgraded_and_converted(new_place):
    programs = server.of_major(16)
    if programs is None or programs.major == server.newest().major:
        pytest.skip("PostgreSQL 16 and a newer one are needed")
    new_place.rows = make_as_before(new_place.path, programs)
    assert_converted(new_place)
    assert cluster_of(new_place).name == str(server.newest().major)


@pytest.mark.parametrize("victim", ["session", "keeper", "both"])
def test_a_conversion_that_is_killed_is_done_by_the_next_start(old_place, made_before, victim):
    user = caught_converting(old_place, made_before[0])
    victims = {"session": [b"--single"], "keeper": [b"tamias.features.embedded.keeper"]}
    for words in victims.get(victim, [*victims["keeper"], *victims["session"]]):
        for pid in processes(old_place, words):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    user.kill()
    old_place.wait_until_nothing_runs()
    assert_converted(old_place)


def caught_converting(place, original):
    """A user whose data is just being converted, which takes only moments: more than one may be needed."""
    for _ in range(20):
        user = place.begin()
        while not processes(place, b"--single"):
            if select.select([user.process.stdout], [], [], 0)[0]:
                break
        else:
            return user
        user.kill()
        place.wait_until_nothing_runs()
        shutil.rmtree(place.path)
        shutil.copytree(original, place.path)
    raise AssertionError("no conversion was seen")


def processes(place, words):
    return [pid for pid in place.processes() if words in command_line(pid)]


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


class Killed(Exception):
    """Instead of a kill, at an exact place."""


@pytest.mark.parametrize("moment", ["before the password", "before the session", "after the session"])
def test_a_conversion_can_end_between_any_two_steps(old_place, monkeypatch, moment):
    pg_folder, written = old_place.path / "pg", []

    def write(path, text):
        written.append(path.name)
        if moment == "before the password" or path.name == "pg_hba.conf":
            raise Killed
        real_write(path, text)

    def run(*words, **named):
        if moment == "before the session":
            raise Killed
        real_run(*words, **named)

    real_write, real_run = server._write, server.run_as_superuser
    with monkeypatch.context() as patch:
        patch.setattr(server, "_write", write)
        patch.setattr(server, "run_as_superuser", run)
        with pytest.raises(Killed):
            server.ready_login(cluster_of(old_place), server.newest(), server_account(pg_folder))
    assert ("pg_hba.conf" in written) == (moment == "after the session")
    assert_converted(old_place)


def test_the_note_of_a_killed_session_whose_number_another_process_has_is_no_obstacle(old_place):
    cluster = cluster_of(old_place)
    note = [f"-{os.getpid()}", str(cluster), "1700000000", "5432", "", ""]
    (cluster / "postmaster.pid").write_text("\n".join(note) + "\n")
    assert_converted(old_place)


def test_data_that_an_earlier_version_works_on_is_in_use(place):
    place.user()
    (place.path / "pg" / "password").unlink()
    with pytest.raises(DataInUse, match=r"an earlier version of Tamias works on .*; end it") as told:
        Database(place.path)
    assert told.value.exit_code == 11
