"""Segments merged by `tamias repack` take less space, and every answer is what it was, also after a kill."""

import hashlib
import json
import signal
from contextlib import closing

import pytest
import zstandard

import tamias as library
from tamias.archive.captures import all_extents, document_states
from tamias.archive.file_store import segments_of
from tamias.archive.reader.graph_history import ANY, GraphHistory
from tamias.archive.reader.library import NotArchived
from tamias.database.connect import Database
from tamias.features.repack import recode, repacker, segments
from tamias.sinks.segments.segment_files import SegmentReader

ROUNDS = 6
SECRET = "Zaphod"


def page(number, turn):
    """Hardly changes: of two hundred statements one, and one of a blank node."""
    lines = [
        f'<#{n}> <http://v.example/says> "{hashlib.sha512(f"{number} {n}".encode()).hexdigest()}" .'
        for n in range(200)
    ]
    lines[turn] = f'<#{turn}> <http://v.example/says> "round {turn}", [] .'
    return "\n".join(lines).encode()


def revisit(tamias, site, *changed):
    for number, turn in changed:
        site.pages[f"/{number}.ttl"] = page(number, turn)
    urls = [site.url(f"/{number}.ttl") for number, _ in changed]
    assert tamias.run("add", *urls).returncode == 0
    return tamias.crawl("--recrawl", *urls)


def visit(tamias, site, *changed):
    assert revisit(tamias, site, *changed).returncode == 0


@pytest.fixture
def visited(request, tamias, site):
    """Documents in several states, each crawl with segments of its own."""
    site.pages["/forgotten.ttl"] = f'<> <http://v.example/says> "{SECRET} {"x" * 64}" .'.encode()
    alike = {f"/alike{n}.ttl": f'<> <http://v.example/says> "one of some, {n}" .'.encode() for n in range(4)}
    site.pages |= alike  # their bodies become a group
    assert tamias.run("add", *map(site.url, ("/forgotten.ttl", *alike))).returncode == 0
    for turn in range(getattr(request, "param", 3)):
        visit(tamias, site, *((number, turn) for number in range(3)))
    return tamias


def answers(tamias):
    """All statements ever, those of now, and those of a time; as they are written, line by line."""
    commands = ["export --history", "export", "query --format nquads --at 2100-01-01"]
    everything = "CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } FILTER(CONTAINS(STR(?g), '.ttl')) }"
    done = [tamias.run(*each.split(), *([everything] if "query" in each else [])) for each in commands]
    assert [each.returncode for each in done] == [0, 0, 0], [each.stderr for each in done]
    return [sorted(each.stdout.splitlines()) for each in done]


def histories(tamias):
    """Every version of every document: its bytes, and each statement with the times at which it held."""
    with library.Archive(tamias.data) as archive:
        return {
            each.url: (
                [archive.get(each.url, version=one.number).bytes() for one in archive.versions(each.url)],
                [(str(quad), spans) for quad, spans in archive.graph_history(each.url).versions(ANY)],
            )
            for each in archive.resources()
        }


def stored(tamias):
    return sum(path.stat().st_size for path in (tamias.data / "rdf").iterdir())


def repack(tamias, *words):
    done = tamias.run("repack", "--after", "0", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def unpacked(path):
    with zstandard.ZstdDecompressor().stream_reader(path.read_bytes(), read_across_frames=True) as stream:
        return stream.read()


def check(tamias):
    done = tamias.run("check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("visited", [ROUNDS], indirect=True)
def test_statements_take_less_space_and_every_answer_is_the_same(visited, site):
    before, size = answers(visited), stored(visited)
    done = repack(visited)
    assert done["segment_bytes"] == size - stored(visited)
    assert stored(visited) < size / 3
    assert answers(visited) == before
    check(visited)
    assert repack(visited)["segments"] == 0
    visit(visited, site, (0, ROUNDS))
    before = answers(visited)
    assert repack(visited)["segments"] == 2  # the new one, and the one that it is merged with
    assert len(list((visited.data / "rdf").iterdir())) == 1
    assert answers(visited) == before
    check(visited)


STEPS = ("recoded-synced", "recoded-switched", "segments-merged", "merge-committed")


@pytest.mark.parametrize("fault", ["pack-made", "blob-part-written", *STEPS])
def test_a_repack_killed_at_a_step_leaves_every_answer(visited, fault):
    before = answers(visited), histories(visited)
    visited.env["TAMIAS_FAULT"] = f"{fault}:1"
    done = visited.run("repack", "--after", "0")
    del visited.env["TAMIAS_FAULT"]
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    assert (answers(visited), histories(visited)) == before
    check(visited)
    repack(visited)
    assert (answers(visited), histories(visited)) == before
    assert len(list((visited.data / "rdf").iterdir())) == 1
    check(visited)


def repack_until(tamias, monkeypatch, step, meanwhile):
    """Repack in this process, and do something else when it comes to a step for the first time."""
    waiting = [step]

    def reached(place):
        if place in waiting:
            waiting.clear()
            meanwhile()

    for module in (recode, segments):
        monkeypatch.setattr(module, "reached", reached)
    with closing(Database(tamias.data)) as database:
        repacker.repack(database, tamias.data, after=0.0)
    assert not waiting


@pytest.mark.parametrize("step", STEPS)
def test_what_is_asked_during_a_repack_is_answered_as_before(visited, monkeypatch, step):
    before, seen = (answers(visited), histories(visited)), []
    repack_until(visited, monkeypatch, step, lambda: seen.append((answers(visited), histories(visited))))
    assert seen == [before]


@pytest.mark.parametrize("step", STEPS)
def test_a_backup_begun_during_a_repack_has_every_state(visited, tamias_at, tmp_path, monkeypatch, step):
    before, begun = (answers(visited), histories(visited)), []

    def back_up():
        begun.append(visited.start("backup", str(tmp_path / "backup")))
        if step in STEPS[:2]:  # it waits while segments are merged
            begun[0].communicate(timeout=300)

    repack_until(visited, monkeypatch, step, back_up)
    _, stderr = begun[0].communicate(timeout=300)
    assert begun[0].returncode == 0, stderr
    other = tamias_at("other")
    assert other.run("restore", str(tmp_path / "backup")).returncode == 0
    assert (answers(other), histories(other)) == before
    check(other)


def test_an_export_goes_on_while_its_segments_are_merged(visited):
    before = visited.run("export", "--history").stdout
    process = visited.start("export", "--history")
    first = process.stdout.readline()  # the pipe is full by far before all is written
    assert repack(visited)["segments"] > 1
    rest, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    assert first + rest == before


@pytest.mark.parametrize("step", STEPS)
def test_what_is_forgotten_during_a_repack_is_in_no_file_after_it(visited, site, monkeypatch, step):
    before, done = answers(visited), []
    url = site.url("/forgotten.ttl")
    repack_until(visited, monkeypatch, step, lambda: done.append(visited.run("forget", url)))
    done.append(visited.run("forget", url))  # a pack that the repack was writing is left to the next run
    assert [each.returncode for each in done] == [0, 0], [each.stdout + each.stderr for each in done]
    for _ in range(2):
        assert SECRET.encode() not in b"".join(unpacked(path) for path in (visited.data / "rdf").iterdir())
        assert answers(visited) == [[line for line in some if SECRET not in line] for some in before]
        check(visited)
        repack(visited)


@pytest.mark.parametrize("merged", [False, True])
def test_a_history_opened_before_its_document_is_forgotten_stays_as_it_was_read(visited, site, merged):
    if merged:
        repack(visited)
    url = site.url("/forgotten.ttl")
    with library.Archive(visited.data) as archive, closing(Database(visited.data)) as database:
        opened, session = archive.graph_history(url), database.session()
        states = document_states(session, url)
        with closing(session), SegmentReader(segments_of(session, visited.data)) as reader:
            assert visited.run("forget", url).returncode == 0
            assert [quad.object.value[: len(SECRET)] for quad, _ in opened.versions(ANY)] == [SECRET]
            assert GraphHistory(states, reader.read).versions(ANY) == []
        with pytest.raises(NotArchived):
            archive.graph_history(url)


def test_what_is_forgotten_goes_out_of_merged_segments_too(visited, site):
    url = site.url("/forgotten.ttl")
    repack(visited)
    before = answers(visited)
    assert any(SECRET in line for line in before[0])
    done = visited.run("forget", url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert answers(visited) == [[line for line in some if SECRET not in line] for some in before]
    check(visited)
    plain = b"".join(unpacked(path) for path in (visited.data / "rdf").iterdir())
    assert SECRET.encode() not in plain


def test_a_backup_has_merged_segments(visited, tamias_at, tmp_path):
    repack(visited)
    before = answers(visited), histories(visited)
    assert visited.run("backup", str(tmp_path / "backup")).returncode == 0
    other = tamias_at("other")
    assert other.run("restore", str(tmp_path / "backup")).returncode == 0
    assert (answers(other), histories(other)) == before
    check(other)


def test_documents_of_a_damaged_merged_segment_are_crawled_again(visited, site):
    before = visited.run("export").stdout
    repack(visited)
    [path] = (visited.data / "rdf").iterdir()
    content = path.read_bytes()
    path.write_bytes(content[:200] + bytes(100) + content[300:])
    export = visited.run("export")
    missing = {line.removeprefix("missing: ") for line in export.stderr.splitlines() if "missing: " in line}
    assert (export.returncode, missing) == (1, {site.url(each) for each in site.pages})
    assert visited.run("check", "--repair").returncode == 1
    assert visited.crawl("--recrawl").returncode == 0
    assert sorted(visited.run("export").stdout.splitlines()) == sorted(before.splitlines())


def test_a_reader_that_looked_before_the_merge_finds_the_statements(visited):
    with closing(Database(visited.data)) as database, closing(database.session()) as session:
        open_segment = segments_of(session, visited.data)

        def read():
            with SegmentReader(open_segment) as reader:
                return [b"".join(reader.read(each)) for each in all_extents(session)]

        before = read()
        repack(visited)
        assert read() == before


@pytest.mark.parametrize("fault", [None, "segments-merged", "merge-committed"])
def test_states_of_a_second_visit_are_stored_with_those_before(tamias, tamias_at, site, fault):
    twin = tamias_at("twin")
    twin.env["TAMIAS_WITHOUT"] = "repack"
    documents = range(14)  # more than a frame in three states
    for turn in range(2):
        for each in (tamias, twin):
            visit(each, site, *((number, turn) for number in documents))
    if fault is not None:
        tamias.env["TAMIAS_FAULT"] = f"{fault}:1"
    done = [revisit(each, site, *((number, 2) for number in documents)).returncode for each in (tamias, twin)]
    tamias.env.pop("TAMIAS_FAULT", None)
    assert done == [0 if fault is None else -signal.SIGKILL, 0]
    assert answers(tamias) == answers(twin)
    check(tamias)
    if fault is None:
        assert len(list((tamias.data / "rdf").iterdir())) == 1
        assert stored(tamias) < stored(twin) / 2
    before = stored(tamias)
    repack(tamias)
    assert stored(tamias) < before
    assert answers(tamias) == answers(twin)
    check(tamias)
    assert repack(tamias)["segments"] == 0
