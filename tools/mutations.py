"""Takes one defence after another out of a copy of the tree: each time a named test must fail.

`python tools/mutations.py [WORD...]` tries those whose name has a word. Ends with 1 if one survives.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "pyproject.toml", "CONTRIBUTING.md")
SECONDS = 300
LEFT_OUT = ("unraisableexception", "cacheprovider", "schemathesis", "hypothesispytest")
QUIETLY = ["--tb=no", "--assert=plain", "-o", "filterwarnings=ignore", *(f"-pno:{name}" for name in LEFT_OUT)]
"""A test that fails leaves things open; some releases of Python 3.11 break while that is told at length."""
ENDLESS = ", which does not end"
_FAILED = re.compile(r"^FAILED ([^\s\[]+)", re.MULTILINE)


class Mutation(NamedTuple):
    """A defence, where it stands, what is put there instead, and the tests that must notice."""

    defence: str
    file: str
    stands: str
    instead: str
    tests: tuple[str, ...]


MUTATIONS = (
    Mutation(
        "private addresses are known",
        "permit/addresses.py",
        "    try:\n        parsed = IPv6Address",
        "    return None\n    try:\n        parsed = IPv6Address",
        ("unit/permit/test_forbidden_addresses.py::test_a_special_address_is_forbidden_by_its_name",),
    ),
    Mutation(
        "the address that is connected to is looked at",
        "fetch/transfer.py",
        "reason = None if self._options.proxy else self._forbidden(address)",
        "reason = None",
        ("integration/fetch/test_http_hostile.py::test_a_name_of_a_forbidden_address_is_not_connected_to",),
    ),
    Mutation(
        "every redirect is asked about",
        "fetch/http.py",
        "stop = await follow(step)",
        "stop = None",
        ("integration/fetch/test_http_redirects.py::test_a_refused_hop_ends_the_capture_with_its_reason",),
    ),
    Mutation(
        "a redirect leads to http and https only",
        "fetch/http.py",
        "if not (url.isascii() and _WEB.match(url)):",
        "if not url.isascii():",
        ("integration/fetch/test_http_redirects.py::test_a_redirect_with_a_password_is_refused",),
    ),
    Mutation(
        "a body has a largest size",
        "fetch/transfer.py",
        "self._most_bytes = options.max_bytes",
        "self._most_bytes = 1 << 60",
        (
            "integration/fetch/test_http_hostile.py::test_a_body_one_byte_over_the_limit_is_a_failure_that_names_it",
        ),
    ),
    Mutation(
        "a body decodes to so many times its size",
        "fetch/transfer.py",
        "return decoded > self._options.ratio_floor and",
        "return False and",
        ("integration/fetch/test_http_hostile.py::test_a_gzip_bomb_is_stopped_by_the_ratio",),
    ),
    Mutation(
        "an archive unpacks to so many times its size",
        "content/containers/limits.py",
        "if self._bytes > self._limits.ratio_after and self._bytes",
        "if False and self._bytes",
        ("unit/content/test_documents.py::test_a_bomb_stops_at_the_ratio",),
    ),
    Mutation(
        "members of a zip share no bytes",
        "content/containers/archives.py",
        "    _refuse_overlap(entries, end)\n",
        "",
        ("unit/content/test_documents.py::test_members_that_share_their_bytes_are_refused",),
    ),
    Mutation(
        "the use of XML entities is bounded",
        "analyse/xml/entities.py",
        "if expanded > FREE_EXPANSION + EXPANSION_RATIO * read:",
        "if False:",
        ("unit/analyse/test_rdf.py::test_one_large_entity_used_very_often_is_refused",),
    ),
    Mutation(
        "XML entities do not nest without end",
        "analyse/xml/entities.py",
        "    if levels == 0:\n",
        "    if levels == -700:\n",
        ("unit/analyse/test_rdf.py::test_entities_nested_too_deep_are_refused",),
    ),
    Mutation(
        "nesting of JSON, XML and Turtle is bounded",
        "analyse/rdf/statements.py",
        "            if self.depth > self._limit:\n",
        "            if self.depth > 1 << 40:\n",
        ("unit/analyse/test_rdf_json.py::test_deep_nesting_is_refused",),
    ),
    Mutation(
        "a document names only graphs of its own site",
        "sinks/segments/naming.py",
        "        if self.keeps(name):\n",
        "        if True:\n",
        ("unit/sinks/test_naming.py", "-k", "strangers_name_becomes or renamed_graph_is_on_record"),
    ),
    Mutation(
        "a term cannot forge a statement",
        "sinks/segments/naming.py",
        'if text.count(b"\\n") == len(quads) and grammar.fullmatch(text):',
        "if True:",
        ("unit/sinks/test_naming.py", "-k", "smuggle or forge or left_out"),
    ),
    Mutation(
        "a blob is what its digest says",
        "archive/blobs/reader.py",
        "if first and _digest(text) != chain[0].sha256:",
        "if False:",
        ("integration/archive/blobs/test_blob_damage.py",),
    ),
    Mutation(
        "the embedded database asks for a password",
        "features/embedded/server.py",
        "{OWNER} scram-sha-256",
        "{OWNER} trust",
        ("integration/database/test_login.py::test_nobody_but_the_owner_with_its_password_gets_in",),
    ),
    Mutation(
        "the login to the embedded database is no superuser",
        "features/embedded/login.sql",
        "LOGIN NOSUPERUSER",
        "LOGIN SUPERUSER",
        ("integration/database/test_login.py::test_the_login_does_not_get_out_of_its_database",),
    ),
    Mutation(
        "the login to the embedded database is for one database",
        "features/embedded/server.py",
        "local {DATABASE} {OWNER} scram",
        "local all all scram",
        ("integration/database/test_login.py::test_the_owner_gets_in_at_its_database_only",),
    ),
    Mutation(
        "the sandbox has a limit on memory",
        "crawl/sandbox/walls.py",
        "        (resource.RLIMIT_AS, settings.memory),\n",
        "",
        ("hostile/test_sandbox.py", "-k", "limit_on_record and hoard"),
    ),
    Mutation(
        "the sandbox has a limit on files",
        "crawl/sandbox/walls.py",
        "        (resource.RLIMIT_FSIZE, file_bytes),\n",
        "",
        ("hostile/test_sandbox.py", "-k", "no_file_grows"),
    ),
    Mutation(
        "the sandbox has a tree of files of its own",
        "crawl/sandbox/walls.py",
        "        leave_files(readable, scratch)\n",
        "",
        ("hostile/test_sandbox.py", "-k", "no_way_out"),
    ),
    Mutation(
        "the sandbox's tree cannot be written to",
        "crawl/sandbox/walls.py",
        "    _set_attributes(root, add=_MOUNT_ATTR_RDONLY)\n",
        "",
        ("hostile/test_sandbox.py", "-k", "no_way_out"),
    ),
    Mutation(
        "the sandbox is under Landlock",
        "crawl/sandbox/walls.py",
        "lambda: restrict_files(readable, [scratch, *devices])",
        "lambda: None",
        ("hostile/test_sandbox.py", "-k", "no_way_out"),
    ),
    Mutation(
        "the sandbox has a filter of system calls",
        "crawl/sandbox/walls.py",
        "_try(CALLS, forbid_calls)",
        "_try(CALLS, lambda: None)",
        ("hostile/test_sandbox.py", "-k", "no_way_out"),
    ),
    Mutation(
        "the sandbox is an ordinary user",
        "crawl/sandbox/walls.py",
        "            os.setresuid(_NOBODY, _NOBODY, _NOBODY)\n",
        "",
        ("hostile/test_sandbox.py", "-k", "ordinary_user"),
    ),
    Mutation(
        "the sandbox is in a network of its own",
        "crawl/sandbox/walls.py",
        "both = CLONE_NEWNET | CLONE_NEWIPC",
        "both = CLONE_NEWIPC",
        ("hostile/test_sandbox.py", "-k", "ordinary_user"),
    ),
    Mutation(
        "the sandbox gives way to those who fetch",
        "crawl/sandbox/sandbox.py",
        "        lower_priority(self._process.pid, niceness(settings.crawl.workers))\n",
        "",
        ("hostile/test_sandbox.py", "-k", "gives_way_to_those_who_fetch"),
    ),
    Mutation(
        "the sandbox gets no secrets",
        "crawl/sandbox/sandbox.py",
        " if name.startswith(_PASSED_ON)}",
        "}",
        ("hostile/test_sandbox.py", "-k", "secrets_of_the_environment"),
    ),
    Mutation(
        "what a strategy puts off is done as its role",
        "features/strategy/strategy.sql",
        "EXECUTE $1; SET CONSTRAINTS ALL IMMEDIATE; END",
        "EXECUTE $1; END",
        ("integration/strategy/test_escapes.py", "-k", "before_the_role_is_left"),
    ),
    Mutation(
        "a strategy leaves no trigger and no cursor",
        "features/strategy/build.py",
        "    if left is not None:\n",
        "    if False:\n",
        ("integration/strategy/test_escapes.py", "-k", "stays_in_its_role and cursor"),
    ),
    Mutation(
        "a strategy is made on a connection of its own",
        "database/connect.py",
        "self._apart = Session(self._connect_apart, self._patience, self._outage, prepares=False)",
        "return self",
        ("integration/strategy/test_escapes.py", "-k", "nothing_else_uses"),
    ),
    Mutation(
        "after a strategy's text its search path is not trusted",
        "features/strategy/build.py",
        '    _do(cursor, "trust_no_path", number)\n',
        "",
        ("integration/strategy/test_escapes.py", "-k", "operators"),
    ),
    Mutation(
        "a strategy cannot catch the time limit",
        "features/strategy/scores.py",
        "        if not done.wait(seconds + GRACE_SECONDS):",
        "        if False:",
        ("integration/strategy/test_escapes.py", "-k", "time_limit and 18"),
    ),
    Mutation(
        "an export goes on behind missing bytes",
        "sinks/segments/segment_files.py",
        "        if not missing:\n            raise",
        "        raise",
        ("integration/crawl/test_damaged_segment.py", "-k", "mends"),
    ),
    Mutation(
        "what is repaired is read as if for the first time",
        "frontier/due.py",
        '        done_by(cursor, "forget_answers", wanted)\n',
        "",
        ("integration/crawl/test_damaged_segment.py", "-k", "mends"),
    ),
    Mutation(
        "a lease that ended settles nothing",
        "frontier/postgres.py",
        "if (each.lease.qid, each.lease.token) in locked]",
        "]",
        ("conformance/test_frontier.py", "-k", "late_finish or late_return"),
    ),
    Mutation(
        "what robots.txt forbids is not fetched",
        "permit/robots.py",
        "        verdict = _strongest(self.literal, path)\n",
        "        verdict = _NO_MATCH\n",
        ("unit/permit/test_robots_rfc9309.py", "-k", "r6 or r7_paths"),
    ),
    Mutation(
        "a redirect of robots.txt is asked for in the turn of its host",
        "crawl/request/gate.py",
        "        if self._is_held(target, held):\n            return None\n",
        "        if held:\n            return None\n",
        ("integration/crawl/test_crawl_gate.py", "-k", "one_by_one"),
    ),
    Mutation(
        "an excluded host is not asked",
        "crawl/plan/admit.py",
        "        if reason is not None or kind != ROBOTS:\n",
        "        if reason is None:\n            return None\n        if kind != ROBOTS:\n",
        ("integration/crawl/test_crawl_gate.py", "-k", "out_of_scope"),
    ),
    Mutation(
        "a flood of one gRPC client is read in slices",
        "features/urlfrontier/grpc/http2.py",
        "size = SLICE if self._was_useful and self._futile < MOST_FUTILE / 2 else SMALL_SLICE",
        "size = 1 << 30",
        ("unit/serve/test_turns_of_connections.py", "-k", "before_more_than_a_few_slices"),
    ),
    Mutation(
        "a gRPC client that sends empty frames is sent away",
        "features/urlfrontier/grpc/http2.py",
        "if self._futile > MOST_FUTILE:",
        "if False:",
        ("unit/serve/test_turns_of_connections.py", "-k", "without_anything_in_them"),
    ),
    Mutation(
        "unfinished gRPC messages of one connection are bounded",
        "features/urlfrontier/grpc/http2.py",
        "if length > 0 and self.held > MOST_HELD:",
        "if False:",
        ("unit/serve/test_turns_of_connections.py", "-k", "unfinished_messages"),
    ),
    Mutation(
        "unfinished gRPC messages of all connections are bounded",
        "features/urlfrontier/grpc/http2.py",
        "if length > 0 and self._held > MOST_HELD_BY_ALL:",
        "if False:",
        ("unit/serve/test_connections.py", "-k", "holds_the_most_bytes"),
    ),
    Mutation(
        "gRPC connections of one address are bounded",
        "features/urlfrontier/grpc/http2.py",
        "if self._by_address[member.peer] > self._most_of_one_address:",
        "if False:",
        ("unit/serve/test_connections.py", "-k", "of_one_address"),
    ),
    Mutation(
        "gRPC connections are bounded",
        "features/urlfrontier/grpc/http2.py",
        "elif len(self._members) > self._most:",
        "elif False:",
        ("unit/serve/test_connections.py", "-k", "the_quietest_leaves"),
    ),
    Mutation(
        "idle gRPC connections are closed",
        "features/urlfrontier/grpc/http2.py",
        "if not member.is_busy and now - member.active_at > patience:",
        "if False:",
        ("unit/serve/test_connections.py", "-k", "idle_connections"),
    ),
    Mutation(
        "the items of a gRPC batch are counted before they are read",
        "features/urlfrontier/puts.py",
        "if sum(map(raw.count, _ITEM)) <= 8 * MOST_OF_A_BATCH:",
        "if True:",
        ("unit/serve/test_batch_bounds.py", "-k", "not_even_parsed"),
    ),
    Mutation(
        "a far worker's lease is renewed",
        "features/remote_workers/committer.py",
        "return await self._store.renew(leases, seconds) or []",
        "return []",
        ("conformance/test_worker_store.py", "-k", "lease_is_renewed"),
    ),
    Mutation(
        "a far worker's count of pages that are alike is everybody's",
        "features/remote_workers/committer.py",
        "        if release.alike is not None:\n",
        "        if False:\n",
        ("integration/urlfrontier/test_remote_committer.py", "-k", "alike"),
    ),
    Mutation(
        "an endless site has a budget",
        "permit/traps.py",
        "if self._host_budget and visits >= self._host_budget + earned:",
        "if False:",
        ("hostile/test_traps.py", "-k", "grows_with_what_is_new"),
    ),
    Mutation(
        "a document has so many statements for each byte",
        "model/document.py",
        "        if more > self._left:\n",
        "        if False:\n",
        ("hostile/test_sandbox.py", "-k", "too_many_statements"),
    ),
    Mutation(
        "a bomb in the sandbox makes room for others",
        "crawl/sandbox/pool.py",
        "        if seconds < turn.quantum:\n            return False\n",
        "        return False\n",
        ("unit/crawl/test_sandbox_turns.py", "-k", "each_time_it_is_stopped"),
    ),
    Mutation(
        "hosts that stop answering together are our own fault",
        "crawl/request/gate.py",
        "            self._lost[place] = self._clock()\n            self._judge()\n",
        "            self._lost[place] = self._clock()\n",
        ("unit/crawl/test_network.py", "-k", "stop_answering_together"),
    ),
    Mutation(
        "a line of robots.txt that is cut is dropped",
        "permit/robots.py",
        "    if cut:\n        lines.pop()\n",
        "",
        ("integration/crawl/test_crawl_gate.py", "-k", "500_kib"),
    ),
    Mutation(
        "the delay is counted from the latest that the time can be",
        "frontier/postgres.py",
        '{**hosts, "now": self._now_at_latest()}',
        "hosts",
        ("integration/test_frontier_postgres.py", "-k", "came_late"),
    ),
    Mutation(
        "the host of a dead worker waits for what may be under way",
        "frontier/postgres.py",
        "blocked_until=now + round((ABANDONED + place / len(held)) * delay_ms)",
        "blocked_until=None",
        ("integration/test_frontier_postgres.py", "-k", "host_of_a_dead_worker"),
    ),
    Mutation(
        "others cannot read the files of the data directory",
        "sinks/segments/segment_files.py",
        "os.O_EXCL | os.O_APPEND, 0o600)",
        "os.O_EXCL | os.O_APPEND, 0o644)",
        ("integration/crawl/test_secrets.py", "-k", "nobody_else_can_list"),
    ),
    Mutation(
        "a folder that others could list is closed",
        "database/disk.py",
        "                folder.chmod(0o700)\n",
        "                pass\n",
        ("integration/crawl/test_secrets.py", "-k", "earlier_version"),
    ),
    Mutation(
        "a request has one Host header",
        "features/service/http/middleware.py",
        'if sum(name == b"host" for name, _ in scope["headers"]) > 1:',
        "if False:",
        ("hostile/test_host_check.py", "-k", "two_names"),
    ),
    Mutation(
        "a column of a CSV file is no formula",
        "features/pages/html/page.py",
        "lines.writerow([csv_cell(name) for name in table.columns])",
        "lines.writerow(table.columns)",
        ("unit/serve/test_csv.py",),
    ),
    Mutation(
        "writing needs the secret",
        "features/service/http/callers.py",
        "    if not given_secret(request):",
        "    if not given_secret(request):\n        return OWNER\n    if not given_secret(request):",
        ("integration/serve/test_writing.py::test_without_the_secret_nothing_is_written",),
    ),
    Mutation(
        "a wrong secret is none",
        "features/service/http/callers.py",
        "    if caller is None:\n        challenge",
        "    if caller is None:\n        return OWNER\n        challenge",
        ("integration/serve/test_writing.py::test_a_wrong_secret_is_refused",),
    ),
    Mutation(
        "a token opens only what its scopes say",
        "features/tokens/tokens.py",
        '        return scope in self.scopes or "admin" in self.scopes',
        "        return True",
        ("integration/serve/test_access.py::test_a_token_opens_what_its_scope_says_and_nothing_else",),
    ),
    Mutation(
        "a bound token stays within its bounds",
        "features/service/http/callers.py",
        "    if outside:",
        "    if False:",
        ("integration/serve/test_access.py::test_a_bound_token_steers_only_its_own_hosts",),
    ),
    Mutation(
        "a withdrawn token opens nothing",
        "features/tokens/tokens.py",
        "    if row is None or row[6] is not None or",
        "    if row is None or",
        ("integration/serve/test_access.py::test_a_withdrawn_token_and_its_sessions_are_over_at_once",),
    ),
    Mutation(
        "a redirect carries no credential elsewhere",
        "fetch/http.py",
        "self._credentials.covering(url)",
        "self._credentials.covering(transfer.request.url)",
        ("integration/fetch/test_http_credentials.py::test_only_hops_to_its_origin_and_path_carry_it",),
    ),
    Mutation(
        "only this machine is listened to without a chosen secret",
        "features/service/run.py",
        "    if not is_loopback(host) and not secret.chosen:",
        "    if False:",
        ("integration/serve/test_running.py::test_others_are_not_listened_to_without_a_chosen_secret",),
    ),
    Mutation(
        "archived pages have no origin",
        "features/service/files/delivery.py",
        'SANDBOX = "sandbox; ',
        'SANDBOX = "',
        ("integration/serve/test_reading.py::test_browsers_cannot_be_made_to_run_what_was_archived",),
    ),
    Mutation(
        "foreign names lead nowhere on loopback",
        "features/service/http/middleware.py",
        "and not self._knows(scope)",
        "and False",
        ("hostile/test_host_check.py::test_a_foreign_name_is_refused_on_loopback",),
    ),
    Mutation(
        "what is decoded with a forgotten body is coded anew first",
        "features/forgetting/erase_blobs.py",
        "recoded += recode_without(writer, session, sha256).blobs",
        'session.execute(b"DELETE FROM blob WHERE false")',
        (
            "integration/archive/test_forget.py::test_a_version_in_the_middle_goes_and_all_others_are_the_same",
        ),
    ),
    Mutation(
        "the records of forgotten bodies are overwritten",
        "archive/blobs/local.py",
        "_write_zeros(file, start, length)",
        "pass",
        (
            "integration/archive/test_forget.py::test_a_version_in_the_middle_goes_and_all_others_are_the_same",
        ),
    ),
    Mutation(
        "statements of forgotten documents are erased",
        "features/forgetting/files.py",
        'blank[skip : skip + size] = b"\\n" * size',
        "pass",
        ("unit/sinks/test_erasing.py",),
    ),
    Mutation(
        "a forgotten URL is not fetched again",
        "crawl/plan/forgotten_urls.py",
        "return self._reasons.get(key) or (self._learnt.get(_digest(key)) if self._learnt else None)",
        "return None",
        ("integration/serve/test_forgetting.py",),
    ),
    Mutation(
        "the type of a cell decides what is a blank node",
        "features/sparql_copy/source.py",
        'cell.type == "bnode" or (cell.type == "uri" and value.startswith(_NODE_ID))',
        'cell.type == "bnode" or value.startswith(_NODE_ID)',
        (
            "integration/harvesters/test_endpoint_crawl.py"
            "::test_a_literal_that_looks_like_a_blank_node_of_a_server_stays_a_literal",
        ),
    ),
    Mutation(
        "a description of an endpoint has a graph of its own",
        "features/sparql_copy/survey.py",
        "NamedNode(address_iri(client.url) + DESCRIPTION)",
        "NamedNode(address_iri(client.url))",
        (
            "integration/harvesters/test_endpoint_crawl.py"
            "::test_the_description_of_an_endpoint_is_in_a_graph_of_its_own",
        ),
    ),
    Mutation(
        "pauses and failures of a harvest count since its last progress",
        "features/harvests/stage.py",
        "if progress.steps > before + 1:",
        "if False:",
        ("integration/harvesters/test_throttled.py::test_failures_count_since_the_last_progress",),
    ),
    Mutation(
        "a known ending counts more than an unknown declared type",
        "content/sniff.py",
        "if declared in FORMATS or not suffix else (suffix, declared)",
        "if declared or not suffix else (suffix, declared)",
        ("unit/content/test_sniff.py", "unit/crawl/test_declared_types.py"),
    ),
    Mutation(
        "statements end where an address moved",
        "archive/captures.py",
        "moved = [moved for attempt in listed for moved in _moved(attempt)]",
        "moved = []",
        ("integration/crawl/test_walls.py::test_statements_end_where_an_address_moved_and_get_follows",),
    ),
    Mutation(
        "addresses in literals are links",
        "analyse/links/discovery.py",
        "isinstance(stands, NamedNode | Literal)",
        "isinstance(stands, NamedNode)",
        ("integration/crawl/test_crawl_pages.py::test_every_way_of_naming_a_document_leads_to_it",),
    ),
    Mutation(
        "what a dump lacks is requested",
        "crawl/commit/bulk_copies.py",
        "return dataset if url in index else msgspec.structs.replace(dataset, lacks=True)",
        "return dataset",
        (
            "integration/crawl/test_crawl_sitemaps.py"
            "::test_what_a_dump_lacks_is_requested_and_the_share_is_reported",
        ),
    ),
    Mutation(
        "the charset of a table is found by its letters",
        "content/charsets.py",
        "return Encoding(guessed_charset(sample))",
        "return Encoding(USUAL)",
        (
            "integration/archive/test_one_truth.py"
            "::test_a_table_without_a_declared_charset_reads_right_everywhere",
        ),
    ),
    Mutation(
        "equal tables at many addresses are versions",
        "features/archive/archiver.py",
        "is_data=error is None and enough",
        "is_data=False",
        (
            "integration/crawl/test_crawl_suspicious.py"
            "::test_equal_tables_at_many_addresses_are_versions_and_equal_messages_are_not",
        ),
    ),
    Mutation(
        "a column given as the key is in both versions",
        "features/diffs/rows.py",
        "raise UnknownKey(key, pairing.names)",
        "key = None",
        ("unit/diffs/test_rows_diff.py",),
    ),
    Mutation(
        "what changes is visited twice for each change that is to be expected",
        "schedule/visit.py",
        "days = min(days, _attentive(history, rate * policy.visits_a_change))",
        "pass",
        ("unit/schedule/test_next_visit.py::test_every_version_of_a_regular_file_is_seen",),
    ),
    Mutation(
        "a document that lost its statements stays as it was",
        "crawl/commit/settlement.py",
        "reason = None if before is None else _doubt(record, before)",
        "reason = None",
        ("integration/crawl/test_walls.py::test_a_document_that_lost_its_statements_stays_as_it_was",),
    ),
    Mutation(
        "walls of bot protection are refused",
        "features/walls/detect.py",
        "wall = _in_headers(capture) or _in_body(capture)",
        "wall = None",
        ("integration/crawl/test_walls.py::test_a_wall_is_refused_and_the_version_before_stays",),
    ),
)


def main() -> None:
    """Tries them one after another and prints a row for each."""
    chosen = [
        each for each in MUTATIONS if not sys.argv[1:] or any(word in each.defence for word in sys.argv[1:])
    ]
    say("| defence removed | test that fails |\n|---|---|")
    with tempfile.TemporaryDirectory(prefix="tamias-mutations-") as folder:
        copy_to(Path(folder))
        survivors = [each.defence for each in chosen if not is_noticed(each, Path(folder))]
    say(f"\n{len(chosen) - len(survivors)} of {len(chosen)} are noticed")
    sys.exit(bool(survivors))


def say(text: str) -> None:
    """Prints at once."""
    print(text, flush=True)  # noqa: T201


def copy_to(folder: Path) -> None:
    """What the tests need of the tree, so that the tree itself is never touched."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)


def is_noticed(mutation: Mutation, folder: Path) -> bool:
    """Whether a test fails without the defence; the copy is whole again afterwards."""
    file = folder / "src" / "tamias" / mutation.file
    whole = file.read_text()
    if whole.count(mutation.stands) != 1:
        say(f"| {mutation.defence} | **not found in {mutation.file}: mend tools/mutations.py** |")
        return False
    file.write_text(whole.replace(mutation.stands, mutation.instead))
    try:
        failed = failures(mutation.tests, folder)
    finally:
        file.write_text(whole)
    again = mutation.tests if failed and failed.endswith(ENDLESS) else (failed or "",)
    if failed and all(failures(again, folder) for _ in range(2)):  # once may be a busy machine
        say(f"| {mutation.defence} | **{failed} fails with it, too** |")
        return False
    say(f"| {mutation.defence} | {failed or '**survives**'} |")
    return failed is not None


def failures(tests: tuple[str, ...], folder: Path) -> str | None:
    """The first test that fails; None when all pass. A run that breaks otherwise is told."""
    named = [f"tests/{each}" if ".py" in each else each for each in tests]
    command = [sys.executable, "-m", "pytest", "-q", "-x", *QUIETLY, *named]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return tests[0] + ENDLESS
    found = _FAILED.search(run.stdout)
    if run.returncode and found is None:
        say(f"pytest cannot run {' '.join(tests)}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return found[1].removeprefix("tests/") if found else None


if __name__ == "__main__":
    main()
