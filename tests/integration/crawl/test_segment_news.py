"""The durable lengths of segments, as the database keeps them."""

from contextlib import closing

from msgspec.structs import replace

from tamias.archive.stored_files import commit_files, left_open, new_segment


def test_of_several_news_about_one_segment_the_longest_counts(database):
    """A worker that read two large documents between two commits tells of its segment twice."""
    with closing(database.session()) as session:
        segment = new_segment(session, 4711)
        news = [replace(segment, committed=length) for length in (100, 300, 200)]
        session.transact(lambda cursor: commit_files(cursor, news))
        assert left_open(session, [4711]) == [replace(segment, committed=300)]
        old = replace(segment, committed=50, sealed=True)
        session.transact(lambda cursor: commit_files(cursor, [old]))
        assert left_open(session, [4711]) == []
