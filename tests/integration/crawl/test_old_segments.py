"""Segments of earlier versions: their names are numbers, and they are read as before."""

from contextlib import closing
from uuid import UUID

from tamias.database.connect import Database
from tamias.sinks.segments.segment_files import SegmentWriter

QUAD = b'<http://e.example/s> <http://e.example/p> "kept" <http://e.example/> .\n'
URL = "http://e.example/"


def test_quads_of_a_data_directory_of_an_earlier_version_are_exported(tamias_at):
    tamias = tamias_at("data")
    with closing(Database(tamias.data)) as old, closing(old.session()) as session:
        (tamias.data / "rdf").mkdir()
        with SegmentWriter(tamias.data / "rdf" / "1.nq.zst", 1) as writer:
            with writer.document() as document:
                document.write(QUAD)
                extent = document.extent
            committed = writer.sync()
        place = [extent.segment, extent.frame, extent.start, extent.length]

        def fill(cursor):
            cursor.execute(
                "INSERT INTO stored_file (file, kind, name, segment, worker, committed, sealed)"
                " VALUES (gen_random_uuid(), 'rdf', '1.nq.zst', 1, 1, %s, true)",
                [committed],
            )
            cursor.execute(
                "INSERT INTO capture (bucket, capture, qid, crawl, uid, started_at, ended_at, outcome,"
                " status, depth, url, segment, frame, start, length, reason, worker, agent)"
                " VALUES (0, %s, 1, 1, 1, 1, 2, 1, 200, 0, %s, %s, %s, %s, %s, '', 'w', 'a')",
                [UUID(int=1), URL, *place],
            )
            cursor.execute(
                "INSERT INTO current_document VALUES"
                " (0, substr(sha256(convert_to(%s, 'UTF8')), 1, 16), 1, 1, %s, %s, %s, %s, %s, false, %s)",
                [URL, UUID(int=1), *place, URL],
            )

        session.transact(fill)
    assert tamias.quads() == {QUAD.decode().strip()}
    assert tamias.run("check").returncode == 0
