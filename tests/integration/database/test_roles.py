"""Least rights: what workers and services cannot do, even when somebody speaks SQL through them."""

import hashlib
import re
from contextlib import ExitStack, closing, suppress
from functools import partial
from urllib.parse import quote

import psycopg
import pytest

from tamias.archive.blobs.blob import Blob
from tamias.archive.sources import source_records
from tamias.archive.versions import resources
from tamias.database.columns import RowSchema
from tamias.database.connect import Database
from tamias.database.roles import Role, trouble
from tamias.database.sql import statements
from tamias.features.service.queries import thread_pool
from tamias.model.capture import CaptureRecord
from tamias.model.errors import DatabaseError
from tests.messages import saying, unsaid

OWNERS_ALONE = {
    "inbox",  # what people insert is taken by the supervisor
    "placed",  # as are deliveries to sinks
    "capture_sum",  # made by `tamias stats`
    "frontier_urls",
    "links",
    "pages",
    *("alert_message", "alert_round"),  # alerts are sent beside the requests
    "snapshot_capture",  # snapshots are made and read by commands
    *("erasing", "erasing_capture", "forgotten_quads"),  # what is forgotten is removed by the owner
}
"""Tables and views that neither workers nor services have any use for."""
VIEWS = ("frontier_urls", "index_line", "kept_resource", "kept_version", "links", "pages")
_FRONTIER = ("frontier/frontier", "frontier/due", "frontier/tags")
_FOUND = (
    *("archive/captures", "archive/references", "archive/blobs/blobs", "archive/versions/resources"),
    *(
        f"archive/sources/{name}"
        for name in ("catalogues", "declared", "harvests", "revisits", "sites", "source_records")
    ),
    *("crawl/commit/page_tags", "filters/blocked", "permit/robots"),
)
RUNS = {
    Role.WORKER: (*_FRONTIER, *_FOUND),
    Role.FRONTIER: (
        *(
            *_FRONTIER,
            *_FOUND,
            "features/urlfrontier/held",
            "frontier/service",
        ),
        "features/remote_workers/committer",
    ),
    Role.SERVICE: (
        *(
            *_FRONTIER,
            "features/stats/figures",
            "archive/reader/library",
            "features/service/queries/queries",
            "features/service/api/frontier",
        ),
        *(
            "features/service/events/events",
            "features/feeds/feeds",
            "features/published/published",
            "features/pages/pages",
        ),
        *(
            "features/service/sparql/downloads",
            "features/service/events/webhooks",
            "access/audit",
            "features/tokens/tokens",
        ),
    ),
}
"""Files whose statements are run as a role, some so seldom that no test of a crawl would miss a right."""
NOT_THEIRS = {
    "archive/sources/revisits": {"set_importances"},
    "archive/blobs/blobs": {
        *("make_wanted", "want", "delete_unwanted", "delete_unwanted_in_chunks", "delete_empty_groups"),
        *("note_erasing", "take_out", "erasing", "erased"),
    },
    "features/service/events/webhooks": {
        *("behind", "note_seen", "put_delivery", "claim", "settle", "stop_webhook", "forget_deliveries"),
    },
}
"""Statements in them that the owner runs: collecting, delivering, and weighing what is watched."""
NOT_OF_ROLE = {
    (Role.WORKER, "frontier/tags"): {"forget_setters"},
    (Role.FRONTIER, "frontier/service"): {
        *("next_run", "set_most_done", "forget_crawl", "forget_budget", "forget_shares"),
    },
    (Role.SERVICE, "frontier/frontier"): {"write_unreachable", "clear_reached", "resume_hosts"},
    (Role.SERVICE, "frontier/due"): {"count_far_times", "mend_far_records"},
}
"""Statements that only other roles run.

No worker takes a tag away, and only commands end a crawl and mend times.
"""
DECLARED = {
    "archive/captures": RowSchema(CaptureRecord, "capture"),
    "archive/blobs/blobs": RowSchema(Blob, "blob"),
}
"""Files whose columns are those of a struct."""
WORDS = {
    "archive/versions/resources": {"version": resources._VERSION, "licence": resources.LICENCE},
    "features/service/queries/queries": thread_pool.SQL_WORDS,
    "archive/sources/source_records": {"is_stored": source_records._STORED},
}
"""What other files leave out, which the code fills in."""
PARAMETER = re.compile(rb"%\((\w+)\)b")
KEY = b"the key of a webhook"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("roles")


@pytest.fixture(scope="module")
def owner(data):
    """A database as the supervisor has it, with a webhook."""
    with closing(Database(data)) as database:
        with closing(database.session()) as session:
            session.transact(
                lambda cursor: cursor.execute(
                    "INSERT INTO webhook (webhook, url, key, kinds, made_at, seen)"
                    " VALUES ('w', 'http://a.example/', %s, '{}', 0, 0)",
                    [KEY],
                )
            )
        yield database


@pytest.fixture(scope="module")
def sessions(owner, data):
    """A session for each role, and one of the owner."""
    with ExitStack() as stack:
        made = {}
        for role in (None, *Role):
            database = stack.enter_context(closing(Database(data, role=role)))
            made[role] = stack.enter_context(closing(database.session()))
        yield made


@pytest.fixture(params=list(Role))
def session(request, sessions):
    """The session of a role."""
    return sessions[request.param]


def refused(ask, session, statement):
    with pytest.raises(DatabaseError) as told:
        ask(session, statement)
    assert any(words in str(told.value) for words in ("permission denied", "must be owner")), told.value


def tables(ask, session):
    found = ask(
        session,
        "SELECT relname::text FROM pg_class"
        " WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition",
    )
    return {name for (name,) in found}


def test_every_table_is_for_a_role_or_said_to_be_the_owners_alone(sessions, ask):
    granted = ask(
        sessions[None],
        "SELECT DISTINCT relname::text FROM pg_class, unnest(%s::text[]) AS role"
        " WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p', 'v')"
        " AND (has_table_privilege(role, pg_class.oid, 'SELECT, INSERT, UPDATE, DELETE')"
        "      OR has_any_column_privilege(role, pg_class.oid, 'SELECT, INSERT, UPDATE'))",
        [list(Role)],
    )
    assert tables(ask, sessions[None]) - {name for (name,) in granted} == OWNERS_ALONE


def test_no_table_can_be_dropped(session, sessions, ask):
    for name in tables(ask, sessions[None]) - {*VIEWS}:
        refused(ask, session, f"DROP TABLE {name} CASCADE")


def test_no_table_can_be_emptied(session, sessions, ask):
    for name in tables(ask, sessions[None]) - {*VIEWS}:
        refused(ask, session, f"TRUNCATE {name} CASCADE")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE tamias.mine ()",
        "CREATE TABLE public.mine ()",
        "CREATE FUNCTION tamias.mine() RETURNS int LANGUAGE sql RETURN 1",
        "CREATE SCHEMA mine",
        "ALTER TABLE url ADD COLUMN mine int",
        "ALTER TABLE resource DISABLE TRIGGER ALL",
        "CREATE OR REPLACE FUNCTION tamias.tell_state() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
        "CREATE ROLE mine",
        "COPY url TO PROGRAM 'cat'",
    ],
)
def test_nothing_can_be_made_or_changed_but_rows(session, ask, statement):
    refused(ask, session, statement)


def test_the_keys_of_webhooks_cannot_be_read(session, ask):
    refused(ask, session, "SELECT key FROM webhook")
    refused(ask, session, "SELECT * FROM webhook")


def test_workers_know_nothing_of_webhooks(sessions, ask):
    for role in (Role.WORKER, Role.FRONTIER):
        refused(ask, sessions[role], "SELECT url FROM webhook")
        refused(ask, sessions[role], "SELECT FROM delivery")


@pytest.mark.parametrize("table", ["capture", "version", "blob", "resource", "url", "host"])
def test_a_worker_deletes_nothing_of_what_was_found(sessions, ask, table):
    refused(ask, sessions[Role.WORKER], f"DELETE FROM {table}")


@pytest.mark.parametrize(
    ("table", "column"),
    [("capture", "url"), ("version", "number"), ("blob", "size"), ("stored_file", "worker"), ("event", "at")],
)
def test_the_service_changes_nothing_of_what_was_found(sessions, ask, table, column):
    refused(ask, sessions[Role.SERVICE], f"DELETE FROM {table}")
    refused(ask, sessions[Role.SERVICE], f"UPDATE {table} SET {column} = {column}")


def test_the_service_cannot_give_others_what_it_has(sessions, ask):
    ask(sessions[Role.SERVICE], "GRANT ALL ON webhook TO tamias_worker")  # a warning is all it gets
    refused(ask, sessions[Role.WORKER], "SELECT url FROM webhook")


def test_a_worker_cannot_change_the_text_of_a_strategy(sessions, ask):
    refused(ask, sessions[Role.WORKER], "UPDATE strategy SET text = ''")


@pytest.mark.parametrize(("role", "place"), [(role, place) for role in Role for place in RUNS[role]])
def test_every_statement_that_a_role_runs_is_within_its_rights(sessions, role, place):
    package, _, name = place.rpartition("/")
    read = DECLARED[place].statements if place in DECLARED else partial(statements, **WORDS.get(place, {}))
    for statement in read("tamias." + package.replace("/", "."), f"{name}.sql").values():
        if statement.name in {*NOT_THEIRS.get(place, ()), *NOT_OF_ROLE.get((role, place), ())}:
            continue
        numbers = {}
        text = PARAMETER.sub(
            lambda match, numbers=numbers: b"$%d" % numbers.setdefault(match[1], len(numbers) + 1),
            statement.text,
        )
        sessions[role].transact(
            lambda cursor, text=text: cursor.connection.execute(b"EXPLAIN (GENERIC_PLAN) " + text)
        )


def test_reset_role_comes_back_to_the_role(sessions, ask):
    assert ask(sessions[Role.WORKER], "RESET ROLE") == []
    assert ask(sessions[Role.WORKER], "SELECT current_user::text") == [("tamias_worker",)]


def test_a_lost_connection_is_made_anew_as_the_role(sessions, ask):
    [(backend,)] = ask(sessions[Role.SERVICE], "SELECT pg_backend_pid()")
    ask(sessions[None], "SELECT pg_terminate_backend(%s)", [backend])
    [(anew, role)] = ask(sessions[Role.SERVICE], "SELECT pg_backend_pid(), current_user::text")
    assert (anew != backend, role) == (True, "tamias_service")


def test_a_process_with_a_role_gives_the_rights_of_this_release_too(data, sessions, ask):
    ask(sessions[None], "UPDATE meta SET rights = 'other'")
    with closing(Database(data, role=Role.WORKER)) as database, closing(database.session()) as session:
        found = ask(session, "SELECT current_user::text, rights <> 'other' FROM meta")
    assert found == [("tamias_worker", True)]


@pytest.mark.parametrize("role", [None, Role.WORKER])
def test_a_database_connects_once_for_itself_and_its_first_session(data, sessions, ask, monkeypatch, role):
    made, connect = [], psycopg.Connection.connect

    def count(*words, **named):
        made.append(connect(*words, **named))
        return made[-1]

    monkeypatch.setattr(psycopg.Connection, "connect", count)
    with closing(Database(data, role=role)) as database:
        assert len(made) == 1
        backends = set()
        for number in (1, 2):
            with closing(database.session()) as session:
                user = "tamias_owner" if role is None else role
                [(backend, found)] = ask(session, "SELECT pg_backend_pid(), current_user::text")
                assert (len(made), found) == (number, user)
            backends.add(backend)
        assert len(backends) == len(made)
    Database(data, role=role).close()
    assert [each for each in made if not each.closed] == []


def test_rights_are_given_anew_where_they_are_not_those_of_this_release(data, sessions, ask):
    ask(sessions[None], "UPDATE meta SET rights = 'other'")
    ask(sessions[None], "REVOKE SELECT ON url FROM tamias_worker")
    ask(sessions[None], "GRANT SELECT ON webhook TO tamias_worker")
    Database(data).close()
    assert ask(sessions[Role.WORKER], "SELECT FROM url") == []
    refused(ask, sessions[Role.WORKER], "SELECT url FROM webhook")


def test_a_release_without_a_feature_leaves_the_rights_that_another_gave_for_it(data, sessions, ask):
    later = """UPDATE meta SET rights = 'other', features = features || '{"of_a_later_release": 1}'"""
    ask(sessions[None], later)
    ask(sessions[None], "CREATE TABLE of_a_later_release (number int4)")
    ask(sessions[None], "GRANT SELECT ON of_a_later_release TO tamias_service")
    try:
        with closing(Database(data, role=Role.SERVICE)) as database, closing(database.session()) as session:
            assert ask(session, "SELECT current_user::text, rights <> 'other' FROM meta") == [
                ("tamias_service", True)
            ]
            assert ask(session, "SELECT FROM of_a_later_release") == []
    finally:
        ask(sessions[None], "DROP TABLE of_a_later_release")
        ask(sessions[None], "UPDATE meta SET features = features - 'of_a_later_release'")


class Elsewhere:
    """A database of an ordinary user on somebody else's server."""

    def __init__(self, administrator, name):
        self.name = name
        self.url = f"postgresql://{name}@/{name}?host={quote(administrator['host'], safe='')}&port=5432"

    def doctor(self, data):
        """What the doctor says, and as whom a worker acts."""
        with (
            closing(Database(data, self.url, role=Role.WORKER)) as database,
            closing(database.session()) as one,
        ):
            [(acting,)] = one.transact(lambda cursor: cursor.execute("SELECT current_user::text").fetchall())
        with closing(Database(data, self.url)) as database, closing(database.session()) as one:
            return acting, one.transact(trouble)


@pytest.fixture
def administer(administrator):
    """Runs a statement as the superuser of a server where somebody has the roles of Tamias already."""
    with closing(psycopg.connect(**administrator, autocommit=True)) as connection:
        for role in Role:
            with suppress(psycopg.errors.DuplicateObject):
                connection.execute(f"CREATE ROLE {role} NOLOGIN NOINHERIT")
        yield connection.execute


@pytest.fixture
def elsewhere(administrator, administer, request):
    name = "u" + hashlib.sha256(request.node.name.encode()).hexdigest()[:8]
    administer(f"CREATE ROLE {name} LOGIN")
    administer(f"CREATE DATABASE {name} OWNER {name}")
    yield Elsewhere(administrator, name)
    administer(f"DROP DATABASE {name} WITH (FORCE)")
    administer(f"DROP ROLE {name}")


def test_a_user_who_cannot_have_the_roles_goes_on_and_is_told_what_an_administrator_does(elsewhere, tmp_path):
    acting, told = elsewhere.doctor(tmp_path)
    assert acting == elsewhere.name
    assert f"CREATE ROLE tamias_worker NOLOGIN; GRANT tamias_worker TO {elsewhere.name}; " in told


def test_once_an_administrator_did_it_the_roles_are_taken(elsewhere, administer, tmp_path):
    Database(tmp_path, elsewhere.url).close()
    for role in Role:
        administer(f"GRANT {role} TO {elsewhere.name}")
    assert elsewhere.doctor(tmp_path) == ("tamias_worker", None)


def test_a_user_who_may_make_roles_makes_what_it_can(elsewhere, administer, tmp_path):
    administer(f"ALTER ROLE {elsewhere.name} CREATEROLE")
    acting, told = elsewhere.doctor(tmp_path)
    assert (acting, not unsaid(told)) == (elsewhere.name, True)


def test_a_worker_can_log_in_as_a_user_who_has_its_role_and_no_more(elsewhere, administer, tmp_path):
    for role in Role:
        administer(f"GRANT {role} TO {elsewhere.name}")
    Database(tmp_path, elsewhere.url).close()
    administer("CREATE ROLE other LOGIN")
    administer("GRANT tamias_worker TO other")
    url = elsewhere.url.replace(f"{elsewhere.name}@", "other@")
    with (
        closing(Database(tmp_path, url, role=Role.WORKER)) as database,
        closing(database.session()) as session,
    ):
        with pytest.raises(DatabaseError, check=saying()):
            session.transact(lambda cursor: cursor.execute("SET ROLE tamias_service"))
        session.transact(lambda cursor: cursor.execute("SET ROLE NONE"))
        with pytest.raises(DatabaseError, match="permission denied"):
            session.transact(lambda cursor: cursor.execute("TRUNCATE url"))
    administer("DROP ROLE other")
