"""`strategy(...)` is the verb on a data directory; beside it, what supervisors and workers have."""

from contextlib import closing

import msgspec
import pytest
from click.testing import CliRunner

from tamias.cli.main import cli
from tamias.crawl.plan.admit import Admission, same_url
from tamias.database.connect import Database
from tamias.features.strategy.strategist import Strategist
from tamias.features.strategy.upkeep import StrategyUpkeep
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import TamiasError
from tamias.settings import Settings, StrategySettings

URL_BY_WORD = """
CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS $$
    SELECT CASE WHEN strpos(url, 'good') > 0 THEN 0.95 ELSE 0.05 END
$$;
"""
SETTINGS = Settings(strategy=StrategySettings(links=True, seconds=30.0))


class Said(msgspec.Struct):
    """What a verb said."""

    code: int
    out: str
    err: str


@pytest.fixture
def database(tamias):
    """Held open, so that the server is not started anew for every call."""
    with closing(Database(tamias.data)) as database:
        yield database


@pytest.fixture
def strategy(tamias, database, tmp_path):
    """`strategy("apply", text)` writes the text to a file first; other words are passed on."""

    def run(word, *words):
        if word == "apply":
            (tmp_path / "strategy.sql").write_text(words[0])
            words = (str(tmp_path / "strategy.sql"), *words[1:])
        place = () if "--db" in words else ("--data", str(tamias.data))
        result = CliRunner().invoke(
            cli, ["strategy", word, *place, *words], env=tamias.env, standalone_mode=False
        )
        if isinstance(result.exception, TamiasError):
            return Said(result.exception.exit_code, result.stdout, str(result.exception))
        assert result.exception is None, result.exception
        return Said(0, result.stdout, result.stderr)

    return run


@pytest.fixture
def by_word():
    """A strategy that looks for the word "good" in addresses."""
    return URL_BY_WORD


@pytest.fixture
def session(database):
    with closing(database.session()) as session:
        yield session


@pytest.fixture
def asked(session):
    """`asked(statement)`: rows, as a person with psql would get them."""

    def rows(cursor):
        return cursor.fetchall() if cursor.description else []

    def ask(statement, *words):
        return session.transact(lambda cursor: rows(cursor.execute(statement, words or None)))

    return ask


@pytest.fixture
def frontier(session):
    return PostgresFrontier(session, same_url=same_url(frozenset()), delay_ms=0)


@pytest.fixture
def admission():
    return Admission(SETTINGS, ())


@pytest.fixture
def seconds():
    """The time limit; long, for the machine may be busy."""
    return SETTINGS.strategy.seconds


@pytest.fixture
def strategist(session, frontier, admission, seconds):
    """As a worker has it."""
    settings = Settings(strategy=StrategySettings(links=True, seconds=seconds))
    return Strategist(session, frontier, admission, settings)


@pytest.fixture
def tend(session, frontier, monkeypatch):
    """What a supervisor does beside, to its end however busy the machine is."""
    monkeypatch.setattr("tamias.features.strategy.upkeep.MOST_SECONDS", 30.0)
    return StrategyUpkeep(session, frontier, SETTINGS, (), 1).step
