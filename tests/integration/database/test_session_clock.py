"""`Session.now()` is the database's time and never goes back."""

from tamias.database import connect

DATABASE_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8"


def test_now_is_the_databases_time(session, ask):
    before = ask(session, DATABASE_TIME)[0][0]
    session.now()
    now = session.now()
    after = ask(session, DATABASE_TIME)[0][0]
    assert before - 1 <= now <= after + 1


def test_now_follows_a_clock_of_the_database_that_is_not_ours(session, monkeypatch):
    real = session.now()
    monkeypatch.setattr(connect, "_CLOCK", "SELECT 4102444800000::float8")
    monkeypatch.setattr(connect, "_CLOCK_SECONDS", -1.0)
    assert session.now() >= 4102444800000 > real


def test_now_asks_the_database_only_now_and_then(session, monkeypatch):
    session.now()
    monkeypatch.setattr(session, "transact", None)
    assert session.now() <= session.now()


def test_now_does_not_go_back_when_the_databases_clock_does(session, monkeypatch):
    before = session.now()
    monkeypatch.setattr(connect, "_CLOCK", "SELECT 0::float8")
    monkeypatch.setattr(connect, "_CLOCK_SECONDS", -1.0)
    assert session.now() >= before


def test_now_is_known_even_when_the_server_was_killed(session, place, monkeypatch):
    before = session.now()
    server = place.running().server_pid
    place.kill("server")
    place.wait_until(lambda: server not in place.processes())
    monkeypatch.setattr(connect, "_CLOCK_SECONDS", -1.0)
    assert session.now() >= before
