-- Figures of the corpus, from counts that are kept (migration 0007) and from bounded looks at the latest rows.

-- name: tallies
-- Counts by kind of thing and key: those folded and those since.
SELECT counted.what, counted.key, sum(counted.n)::int8, sum(counted.bytes)::int8
FROM (SELECT tally.what, tally.key, tally.n, tally.bytes FROM tally WHERE tally.what <> 'host'
      UNION ALL
      SELECT news.what, news.key, news.n, news.bytes FROM tally_news AS news WHERE news.what <> 'host') AS counted
GROUP BY counted.what, counted.key HAVING sum(counted.n) <> 0 OR sum(counted.bytes) <> 0

-- name: hosts
-- How many resources, on how many hosts, and the hosts with most of them.
WITH per_host AS MATERIALIZED (
    SELECT counted.key AS host, sum(counted.n)::int8 AS n
    FROM (SELECT tally.key, tally.n FROM tally WHERE tally.what = 'host'
          UNION ALL
          SELECT news.key, news.n FROM tally_news AS news WHERE news.what = 'host') AS counted
    GROUP BY counted.key HAVING sum(counted.n) > 0)
(SELECT NULL AS host, coalesce(sum(per_host.n), 0)::int8 AS n, count(*)::int8 AS hosts FROM per_host)
UNION ALL
(SELECT per_host.host, per_host.n, 0 FROM per_host ORDER BY per_host.n DESC, per_host.host LIMIT %(top)b::int4)

-- name: portals
-- The portals that list most files, with how many datasets have them.
SELECT source.portal, count(DISTINCT source.resource)::int8, count(DISTINCT source.source)::int8
FROM source WHERE source.portal IS NOT NULL
GROUP BY source.portal ORDER BY 2 DESC, 1 LIMIT %(top)b::int4

-- name: news
-- Whether it is time to fold: how many differences there are, up to a number.
SELECT count(*) FROM (SELECT FROM tally_news LIMIT %(most)b::int4) AS news

-- name: fold
-- Differences become part of the counts.
WITH taken AS (DELETE FROM tally_news RETURNING what, key, n, bytes)
INSERT INTO tally (what, key, n, bytes)
SELECT taken.what, taken.key, sum(taken.n), sum(taken.bytes) FROM taken GROUP BY taken.what, taken.key
ORDER BY taken.what, taken.key
ON CONFLICT (what, key) DO UPDATE SET n = tally.n + excluded.n, bytes = tally.bytes + excluded.bytes

-- name: count_attempts
-- Counts the attempts of slots that are over and were not counted yet, at most those of one day. Ids of captures
-- begin with their time, so a slot is a range of the key.
INSERT INTO attempts (bucket, slot, outcome, n, bytes, duration, saving, measured)
SELECT %(bucket)b::int2, slot.slot, counted.outcome, counted.n, counted.bytes, counted.duration, counted.saving,
       counted.measured
FROM generate_series(greatest(%(first)b::int8, (SELECT max(attempts.slot) + 1 FROM attempts
                                                WHERE attempts.bucket = %(bucket)b::int2)),
                     %(last)b::int8) AS slot (slot)
CROSS JOIN LATERAL (
    SELECT capture.outcome, count(*) AS n, coalesce(sum(capture.bytes), 0) AS bytes,
           coalesce(sum(capture.ended_at - capture.started_at), 0) AS duration,
           coalesce(sum(capture.saving_ms), 0) AS saving, count(capture.saving_ms) AS measured
    FROM capture
    WHERE capture.bucket = %(bucket)b::int2
      AND capture.capture >= (lpad(to_hex(slot.slot * 300000), 12, '0') || repeat('0', 20))::uuid
      AND capture.capture < (lpad(to_hex((slot.slot + 1) * 300000), 12, '0') || repeat('0', 20))::uuid
    GROUP BY capture.outcome
    UNION ALL
    SELECT 0, 0, 0, 0, 0, 0) AS counted
ON CONFLICT DO NOTHING

-- name: forget_attempts
-- Slots that are older than a day.
DELETE FROM attempts WHERE attempts.bucket = %(bucket)b::int2 AND attempts.slot < %(first)b::int8

-- name: attempts
-- Attempts of the slots of a day that are over, by outcome.
SELECT attempts.outcome, sum(attempts.n)::int8, sum(attempts.bytes)::int8, sum(attempts.duration)::int8,
       sum(attempts.saving)::int8, sum(attempts.measured)::int8
FROM attempts WHERE attempts.slot BETWEEN %(first)b::int8 AND %(last)b::int8 AND attempts.n > 0
GROUP BY attempts.outcome

-- name: busiest
-- The most bytes that came in one slot.
SELECT coalesce(max(slot.bytes), 0)::int8
FROM (SELECT sum(attempts.bytes) AS bytes FROM attempts
      WHERE attempts.slot BETWEEN %(first)b::int8 AND %(last)b::int8 GROUP BY attempts.slot) AS slot

-- name: fresh_attempts
-- Attempts since then, by outcome.
SELECT capture.outcome, count(*)::int8, coalesce(sum(capture.bytes), 0)::int8,
       coalesce(sum(capture.ended_at - capture.started_at), 0)::int8, coalesce(sum(capture.saving_ms), 0)::int8,
       count(capture.saving_ms)::int8
FROM capture
WHERE capture.bucket = %(bucket)b::int2
  AND capture.capture >= (lpad(to_hex((%(last)b::int8 + 1) * 300000), 12, '0') || repeat('0', 20))::uuid
GROUP BY capture.outcome

-- name: latest_types
-- Types of the newest versions of a day, so many at most.
SELECT coalesce(newest.media_type, ''), count(*)::int8, sum(newest.byte_size)::int8
FROM (SELECT version.media_type, version.byte_size FROM version
      WHERE version.captured_at > %(since)b::int8 ORDER BY version.captured_at DESC LIMIT %(most)b::int4) AS newest
GROUP BY 1 ORDER BY 2 DESC, 1

-- name: states
-- Resources by state, those that are due and those with a version, in a sample of so many per cent.
SELECT resource.state, count(*)::int8, count(*) FILTER (WHERE resource.next_visit <= %(now)b::int8)::int8,
       count(*) FILTER (WHERE resource.versions > 0)::int8
FROM resource TABLESAMPLE SYSTEM (%(percent)b::float4)
GROUP BY resource.state ORDER BY resource.state
