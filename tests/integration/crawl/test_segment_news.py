"""The durable lengths of segments, as the database keeps them."""

from contextlib import closing

from tamias.archive.captures import Durable, commit_segments, new_segment, open_segments


def test_of_several_news_about_one_segment_the_longest_counts(database):
    """A worker that read two large documents between two commits tells of its segment twice."""
    with closing(database.session()) as session:
        segment = new_segment(session, 4711)
        news = [Durable(segment, 100), Durable(segment, 300), Durable(segment, 200)]
        session.transact(lambda cursor: commit_segments(cursor, news))
        assert open_segments(session, [4711]) == [Durable(segment, 300)]
        session.transact(lambda cursor: commit_segments(cursor, [Durable(segment, 50, sealed=True)]))
        assert open_segments(session, [4711]) == []
