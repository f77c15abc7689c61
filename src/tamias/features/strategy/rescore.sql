-- Other scores for URLs that were never visited. The rules of frontier.sql hold.

-- name: read_unvisited
-- URLs of a bucket in the order of their keys, from a place on: at most so many are looked at, and those are
-- given that belong to the crawl, were never visited, are due and have a usual score.
SELECT near.qid, near.crawl, near.uid, near.url, near.depth::int4, near.tags, host.hkey, near.wanted
FROM (SELECT url.qid, url.crawl, url.uid, url.url, url.depth, url.tags,
             url.status = 0 AND url.fails = 0 AND url.due <= %(now)b::int8 AND url.score <= 1 AND url.depth > 0
             AND url.crawl = %(of_crawl)b::int4 AS wanted
      FROM url
      WHERE url.bucket = %(bucket)b::int2
        AND (url.qid, url.crawl, url.uid) > (%(qid)b::int8, %(crawl)b::int4, %(uid)b::int8)
      ORDER BY url.qid, url.crawl, url.uid LIMIT %(most)b::int4) AS near
JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = near.qid
ORDER BY near.qid, near.crawl, near.uid

-- name: find_outdated
-- Of URLs and their new scores: those that were never visited and whose score is another, or with `only_up`
-- a lower one.
SELECT url.qid, url.crawl, url.uid, new.score
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(score)b::float8[]) AS new (qid, crawl, uid, score)
JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = new.qid AND url.crawl = new.crawl AND url.uid = new.uid
WHERE url.status = 0 AND url.fails = 0 AND url.due <= %(now)b::int8 AND url.score <= 1
  AND CASE WHEN %(only_up)b::bool THEN new.score > url.score + 0.0005
           ELSE abs(new.score - url.score) > 0.0005
                OR abs(url.first_seen - new.score * %(head_start)b::float8 - url.due) > 1000 END

-- name: set_scores
-- New scores, and the head start that a score gives within the host.
UPDATE url
SET score = new.score, due = url.first_seen - (new.score * %(head_start)b::float8)::int8
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(score)b::float8[]) AS new (qid, crawl, uid, score)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = new.qid AND url.crawl = new.crawl AND url.uid = new.uid
  AND url.status = 0 AND url.fails = 0 AND url.due <= %(now)b::int8 AND url.score <= 1
