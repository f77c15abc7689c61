"""A strategy is taken only if it is sound; whatever else happens, the old one stays in force."""

import json

from tests.messages import unsaid

WRONG = {
    "a syntax error": (
        "CREATE FUNCTION score_url(url text) RETURNS real\nLANGUAGE sql AS $$ SELECT 1 $$;\nCREATE FUNKTION;",
        "line 3: syntax error",
    ),
    "a syntax error in a body": (
        "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN RETRUN 1; END $$;",
        "syntax error",
    ),
    "an endless loop": (
        "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS"
        " $$ BEGIN LOOP END LOOP; RETURN 1; END $$;",
        "did not end within 1 s (setting strategy.seconds)",
    ),
    "an endless loop while it is made": (
        "DO $$ BEGIN LOOP END LOOP; END $$;",
        "did not end within 1 s",
    ),
    "sleep": (
        "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(60); RETURN 1; END $$;",
        "did not end within 1 s",
    ),
    "a division by zero": (
        "CREATE FUNCTION score_link(link seen_link) RETURNS float8 LANGUAGE plpgsql AS"
        " $$ BEGIN RETURN 1.0 / length(link.anchor); END $$;",
        "division by zero (PL/pgSQL function score_link(seen_link) line 1 at RETURN)",
    ),
    "a DELETE": (
        "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS"
        " $$ BEGIN DELETE FROM tamias.url; RETURN 1; END $$;",
        "cannot execute DELETE in a read-only transaction",
    ),
    "a DELETE in its own table": (
        "CREATE TABLE mine (word text);"
        " CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS"
        " $$ BEGIN DELETE FROM mine; RETURN 1; END $$;",
        "cannot execute DELETE in a read-only transaction",
    ),
    "a DELETE while it is made": ("DELETE FROM tamias.url;", "permission denied for table url"),
    "an INSERT into the view for people": (
        "INSERT INTO frontier_urls (url) VALUES ('http://example.org/');",
        "permission denied for view frontier_urls",
    ),
    "a DROP": ("DROP TABLE tamias.url;", "must be owner of table url"),
    "reading a file": (
        "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS"
        " $$ SELECT length(pg_read_file('/etc/hostname'))::float8 $$;",
        "permission denied for function pg_read_file",
    ),
    "running a program": ("COPY (SELECT 1) TO PROGRAM 'true';", "permission denied to COPY"),
    "another role": (
        "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS"
        " $$ BEGIN EXECUTE 'RESET ROLE'; DELETE FROM tamias.url; RETURN 1; END $$;",
        'cannot set parameter "role" within security-definer function',
    ),
    "the end of the transaction": ("COMMIT;", "EXECUTE of transaction commands is not implemented"),
    "catching the time limit": (
        "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS"
        " $$ BEGIN LOOP"
        " BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$;",
        "did not end within 1 s",
    ),
    "other arguments": (
        "CREATE FUNCTION score_url(url text, depth int) RETURNS float8 LANGUAGE sql AS $$ SELECT 1.0 $$;",
        "score_url(text, integer) has other arguments than score_url(text) or score_url(known_url)",
    ),
    "another result": (
        "CREATE FUNCTION score_url(url text) RETURNS text LANGUAGE sql AS $$ SELECT url $$;",
        "score_url returns text; it must return one number",
    ),
    "none of the functions": (
        "CREATE FUNCTION score(url text) RETURNS float8 LANGUAGE sql AS $$ SELECT 1.0 $$;",
        "it defines none of the functions score_url, score_link, order_url",
    ),
    "a change of our own function": (
        "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS $$ SELECT 1.0 $$;"
        " DO $$ BEGIN EXECUTE (SELECT format('ALTER FUNCTION %s SECURITY INVOKER', oid::regprocedure)"
        " FROM pg_proc WHERE proname = 'tamias_scores'); END $$;",
        "which is Tamias's own",
    ),
}  # fmt: skip


def test_what_is_wrong_with_a_strategy_is_said_and_the_old_one_stays_in_force(strategy, by_word, tamias):
    assert strategy("apply", by_word).code == 0
    tamias.env["TAMIAS_STRATEGY__SECONDS"] = "1"
    said = {}
    for what, (text, wanted) in WRONG.items():
        done = strategy("apply", text)
        said[what] = (done.code == 2 and wanted in done.err) or done.err
    assert said == dict.fromkeys(WRONG, True)
    shown = json.loads(strategy("show", "--json").out)
    assert (shown["number"], shown["state"], shown["text"]) == (1, "in force", by_word)
    listed = json.loads(strategy("list", "--json").out)
    assert [each["state"] for each in listed] == ["refused"] * len(WRONG) + ["in force"]
    assert "syntax error" in listed[-2]["problem"]


def test_a_dry_run_changes_nothing(strategy, by_word):
    done = strategy("apply", by_word, "--dry-run")
    assert (done.code, "can be activated" in done.out) == (0, True)
    assert not unsaid(strategy("list").out)


def test_an_earlier_strategy_comes_back_by_name_or_as_the_last_one(strategy, by_word):
    for score in ("0.1", "0.2", "0.3"):
        assert strategy("apply", by_word.replace("0.95", score)).code == 0
    assert strategy("rollback").out == "strategy 2 is active again\n"
    assert strategy("rollback", "1").out == "strategy 1 is active again\n"
    assert json.loads(strategy("test", "http://example.org/good", "--json").out)["score"] == 0.1


def test_a_strategy_that_was_never_in_force_does_not_come_back(strategy, by_word):
    strategy("apply", "nonsense")
    done = strategy("rollback", "1")
    assert (done.code, "was never active" in done.err) == (2, True)


def test_without_a_strategy_the_usual_order_holds(strategy, by_word):
    strategy("apply", by_word)
    assert not unsaid(strategy("off").out, "1")
    assert strategy("show").out.startswith("no strategy is active")


def test_scores_are_at_least_0_and_none_leaves_the_usual_one(strategy):
    wanted = {"7": 7.0, "-1": 0.0, "NULL::float8": None, "'NaN'::float8": None, "0.25": 0.25}
    found = {}
    for expression in wanted:
        made = (
            f"CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS $$ SELECT {expression} $$;"
        )
        assert strategy("apply", made).code == 0
        found[expression] = json.loads(strategy("test", "http://example.org/", "--json").out)["score"]
    assert found == wanted


def test_the_rule_of_order_sees_both_scores(strategy):
    done = strategy(
        "apply",
        """
        CREATE FUNCTION score_url(url text) RETURNS int LANGUAGE sql AS $$ SELECT length(url) $$;
        CREATE FUNCTION score_link(context text) RETURNS int LANGUAGE sql AS $$ SELECT length(context) $$;
        CREATE FUNCTION order_url(of_url float8, of_link float8, page known_url) RETURNS float8
            LANGUAGE sql AS $$ SELECT (of_url + 10 * of_link + 100 * page.depth) / 1000 $$;
    """,
    )
    assert done.code == 0, done.err
    told = json.loads(
        strategy(
            "test", "http://a.example/", "--anchor", "two", "--left", "one", "--depth", "3", "--json"
        ).out
    )
    assert (told["score_url"], told["score_link"], told["score"]) == (17, 7, 0.387)


def test_the_examples_can_be_put_in_force(strategy, pytestconfig):
    for file in sorted((pytestconfig.rootpath / "examples" / "strategies").glob("*.sql")):
        done = strategy("apply", file.read_text(), "--dry-run")
        assert done.code == 0, f"{file}: {done.err}"
