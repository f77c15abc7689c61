-- Lanes: sets of tags, each with a number; and URLs that get other tags. The rules of frontier.sql hold.

-- name: put_lane
-- Makes a set of tags known, as long as there are not too many.
-- Numbered here: a node of a Citus cluster has no sequence of such small numbers.
INSERT INTO lane (lane, tags) SELECT (SELECT coalesce(max(lane.lane), 0) + 1 FROM lane), %(tags)b::text[]
WHERE (SELECT count(*) FROM lane) < %(most)b::int8
  AND NOT EXISTS (SELECT FROM lane WHERE lane.tags = %(tags)b::text[])
ON CONFLICT DO NOTHING

-- name: read_lanes
-- All lanes: a few, thousands at most.
SELECT lane.lane, lane.tags FROM lane

-- name: fitting_lanes
-- The lanes that an interest fits.
SELECT lane.lane FROM lane
WHERE (lane.tags @> %(require)b::text[] OR lane.tags && ARRAY['kind=context', 'kind=robots']) AND NOT lane.tags && %(forbid)b::text[]

-- name: tags_of
-- The tags of known URLs, before they get others.
SELECT url.qid, url.crawl, url.uid, coalesce(url.tags, '{}')
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS asked (qid, crawl, uid)
JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = asked.qid AND url.crawl = asked.crawl
        AND url.uid = asked.uid

-- name: retag
-- Gives URLs of locked hosts other tags, and puts them into the lanes of these; says where they were. Not where
-- somebody else changed the tags since they were read.
UPDATE url
SET tags = string_to_array(old.tags, E'\t'), lane = old.new_lane
FROM (SELECT url.qid, url.crawl, url.uid, url.lane, news.lane AS new_lane, news.tags
      FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(lane)b::int4[], %(tags)b::text[],
                  %(before)b::text[]) AS news (qid, crawl, uid, lane, tags, before)
      JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = news.qid AND url.crawl = news.crawl
              AND url.uid = news.uid
      WHERE url.tags IS DISTINCT FROM string_to_array(news.tags, E'\t')
        AND coalesce(url.tags, '{}') = coalesce(string_to_array(news.before, E'\t'), '{}')) AS old
WHERE url.bucket = %(bucket)b::int2 AND url.qid = old.qid AND url.crawl = old.crawl AND url.uid = old.uid
RETURNING url.qid, url.crawl, old.lane, url.lane, url.due < 9223372036854775807

-- name: note_setters
-- Who gave tags to URLs, and when; the latest counts.
INSERT INTO tagged (bucket, qid, crawl, uid, tag, set_by, set_at)
SELECT %(bucket)b::int2, new.qid, new.crawl, new.uid, tag.tag, %(by)b::text, %(now)b::int8
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS new (qid, crawl, uid)
CROSS JOIN unnest(%(add)b::text[]) AS tag (tag)
ON CONFLICT (bucket, qid, crawl, uid, tag) DO UPDATE SET set_by = excluded.set_by, set_at = excluded.set_at

-- name: forget_setters
-- Tags that were taken from URLs.
DELETE FROM tagged USING unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS old (qid, crawl, uid)
WHERE tagged.bucket = %(bucket)b::int2 AND tagged.qid = old.qid AND tagged.crawl = old.crawl
  AND tagged.uid = old.uid AND tagged.tag = ANY(%(remove)b::text[])

-- name: setters
-- Who gave which tags to a URL.
SELECT tagged.tag, tagged.set_by, tagged.set_at FROM tagged
WHERE tagged.bucket = %(bucket)b::int2 AND tagged.qid = %(qid)b::int8 AND tagged.crawl = %(crawl)b::int4
  AND tagged.uid = %(uid)b::int8 ORDER BY tagged.tag

-- name: count_moved
-- Keeps the counts of queues right when URLs went from lane to lane.
UPDATE queue
SET known = queue.known + moved.urls, open = queue.open + moved.open
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(lane)b::int4[], %(urls)b::int8[], %(open)b::int8[])
     AS moved (qid, crawl, lane, urls, open)
WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = moved.qid AND queue.crawl = moved.crawl
  AND queue.lane = moved.lane

-- name: find_by_pattern
-- Some URLs of a crawl whose text fits a pattern, after a given row. Reads all URLs of the crawl.
SELECT url.qid, url.uid, url.url, coalesce(url.tags, '{}') FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4
  AND (url.qid, url.uid) > (%(after_qid)b::int8, %(after_uid)b::int8)
  AND url.url LIKE %(pattern)b::text
ORDER BY url.qid, url.uid LIMIT %(limit)b::int4

-- name: find_one
-- One URL by its number.
SELECT url.qid, url.uid, url.url, coalesce(url.tags, '{}') FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.qid = %(qid)b::int8 AND url.crawl = %(crawl)b::int4
  AND url.uid = %(uid)b::int8
