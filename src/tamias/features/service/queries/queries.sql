-- What clients of the service ask.

-- name: histories
-- Resources by name or address (the name counts first), each with its sources and its versions as columns.
SELECT wanted.place, resource.resource, resource.url, resource.state, resource.title, resource.media_type, resource.expected,
       resource.added_at, resource.next_visit, resource.change_rate, resource.versions,
       resource.error, resource.error_at,
       named.source, named.portal, named.title, named.format, named.licence,
       kept.number, kept.captured_at, kept.sha256, kept.byte_size, kept.media_type, kept.told_type, kept.fingerprint,
       kept.noise, kept.suspicious, kept.capture
FROM unnest(%(resource)b::text[], %(url)b::text[]) WITH ORDINALITY AS wanted (resource, url, place)
CROSS JOIN LATERAL (
    SELECT resource.* FROM kept_resource AS resource
    WHERE resource.resource = wanted.resource OR resource.url = wanted.url
    ORDER BY resource.resource <> wanted.resource LIMIT 1) AS resource
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(source.source ORDER BY source.first_seen, source.source), '{}') AS source,
           array_agg(source.portal ORDER BY source.first_seen, source.source) AS portal,
           array_agg(source.title ORDER BY source.first_seen, source.source) AS title,
           array_agg(source.format ORDER BY source.first_seen, source.source) AS format,
           array_agg(said.licence ORDER BY source.first_seen, source.source) AS licence
    FROM source LEFT JOIN LATERAL ({licence}) AS said ON source.portal IS NOT NULL
    WHERE source.resource = resource.resource) AS named
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(version.number), '{}') AS number, array_agg(version.captured_at) AS captured_at,
           array_agg(encode(version.sha256, 'hex')) AS sha256, array_agg(version.byte_size) AS byte_size,
           array_agg(version.media_type) AS media_type, array_agg(version.told_type) AS told_type,
           array_agg(encode(version.fingerprint, 'hex')) AS fingerprint, array_agg(version.noise) AS noise,
           array_agg(version.suspicious) AS suspicious, array_agg(version.capture::text) AS capture
    FROM (SELECT version.* FROM kept_version AS version WHERE version.resource = resource.resource
          ORDER BY version.number) AS version) AS kept

-- name: hosts
-- Hosts by name after a given one, with how many resources each has.
SELECT counted.key, sum(counted.n)::int8
FROM (SELECT tally.key, tally.n FROM tally WHERE tally.what = 'host' AND tally.key > %(after)b::text
      UNION ALL
      SELECT news.key, news.n FROM tally_news AS news WHERE news.what = 'host' AND news.key > %(after)b::text)
     AS counted
GROUP BY counted.key HAVING sum(counted.n) > 0 ORDER BY counted.key LIMIT %(limit)b::int4

-- name: cdx_origins
-- The next spans of URLs with the same scheme, host and port, from a given URL on. Each is found by one look at the
-- indexes, however many URLs are in it; a URL of another form is a span by itself.
WITH RECURSIVE origin (low, high) AS (
    SELECT ''::text COLLATE "C", %(url)b::text COLLATE "C"
    UNION ALL
    SELECT next.url, CASE WHEN starts_with(next.url, next.origin) THEN next.origin || %(end)b::text
                          ELSE next.url || chr(1) END
    FROM origin
    CROSS JOIN LATERAL (
        SELECT found.url,
               split_part(found.url, '/', 1) || '//' || split_part(found.url, '/', 3) || '/' AS origin
        FROM (SELECT least((SELECT resource.url FROM resource WHERE resource.url >= origin.high
                            ORDER BY resource.url LIMIT 1),
                           (SELECT record.url FROM warc_record AS record WHERE record.url >= origin.high
                            ORDER BY record.url LIMIT 1)) AS url) AS found) AS next
    WHERE next.url IS NOT NULL)
SELECT origin.low, origin.high FROM origin OFFSET 1 LIMIT %(limit)b::int4

-- name: cdx
-- All that can be replayed, in the order of URLs and times: between two texts, of all hosts or of a domain, after a
-- given line. Each span by itself, so that its URLs are found by the indexes.
SELECT line.url, line.captured_at, line.file, line.position, line.length, line.status, encode(line.sha256, 'hex'),
       line.media_type, line.resource, line.revisit, line.capture::text
FROM unnest(%(low)b::text[], %(high)b::text[]) AS span (low, high)
     CROSS JOIN LATERAL (
         SELECT index_line.* FROM index_line
         WHERE index_line.url >= span.low COLLATE "C" AND index_line.url < span.high COLLATE "C"
           AND index_line.url >= %(url)b::text COLLATE "C"
         OFFSET 0) AS line
WHERE (line.url, line.captured_at, line.file, line.position)
      > (%(url)b::text COLLATE "C", %(at)b::int8, %(file)b::text COLLATE "C", %(position)b::int8)
  AND line.captured_at BETWEEN %(since)b::int8 AND %(until)b::int8
  AND (%(domain)b::text IS NULL OR line.host = %(domain)b::text
       OR right(line.host, length(%(domain)b::text) + 1) = '.' || %(domain)b::text)
ORDER BY line.url, line.captured_at, line.file, line.position LIMIT %(limit)b::int4

-- name: cdx_sorted
-- The same in another order, or a page of it: the nearest to a time first, or the newest of each URL.
SELECT line.url, line.captured_at, line.file, line.position, line.length, line.status, encode(line.sha256, 'hex'),
       line.media_type, line.resource, line.revisit, line.capture::text
FROM unnest(%(low)b::text[], %(high)b::text[]) AS span (low, high)
     CROSS JOIN LATERAL (
         SELECT index_line.* FROM index_line
         WHERE index_line.url >= span.low COLLATE "C" AND index_line.url < span.high COLLATE "C" OFFSET 0) AS line
WHERE line.captured_at BETWEEN %(since)b::int8 AND %(until)b::int8
  AND (%(domain)b::text IS NULL OR line.host = %(domain)b::text
       OR right(line.host, length(%(domain)b::text) + 1) = '.' || %(domain)b::text)
ORDER BY abs(line.captured_at - %(closest)b::int8), line.url,
         CASE WHEN %(reverse)b::bool THEN -line.captured_at ELSE line.captured_at END, line.file, line.position
LIMIT %(limit)b::int4 OFFSET %(offset)b::int8

-- name: cdx_count
-- How many lines there are.
SELECT count(*)
FROM unnest(%(low)b::text[], %(high)b::text[]) AS span (low, high)
     CROSS JOIN LATERAL (
         SELECT index_line.* FROM index_line
         WHERE index_line.url >= span.low COLLATE "C" AND index_line.url < span.high COLLATE "C" OFFSET 0) AS line
WHERE line.captured_at BETWEEN %(since)b::int8 AND %(until)b::int8
  AND (%(domain)b::text IS NULL OR line.host = %(domain)b::text
       OR right(line.host, length(%(domain)b::text) + 1) = '.' || %(domain)b::text)

-- name: wanted_now
-- Resources of a name or a host that are under watch, after a given one.
SELECT resource.resource, resource.url FROM resource
WHERE resource.resource > %(after)b::text AND resource.state <> 'stopped'
  AND (%(resource)b::text IS NULL OR resource.resource = %(resource)b::text)
  AND (%(host)b::text IS NULL OR resource.host = %(host)b::text)
ORDER BY resource.resource LIMIT %(limit)b::int4

-- name: alive
-- Whether the database answers.
SELECT 1

-- name: schedule
-- What the next visit to a resource follows from.
SELECT resource.visited_at, resource.tried_at, resource.fails, resource.trouble, resource.every,
       resource.priority, round(resource.missed)::int8
FROM resource
WHERE resource.resource = %(resource)b::text

-- name: politeness
-- How the queue of a host stands.
SELECT host.hkey, host.delay_ms, host.blocked_until,
       (SELECT coalesce(sum(queue.known), 0)::int8 FROM queue
        WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = host.qid),
       (SELECT coalesce(sum(queue.open), 0)::int8 FROM queue
        WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = host.qid)
FROM host WHERE host.bucket = %(bucket)b::int2 AND host.qid = %(qid)b::int8

-- name: robots
-- The latest robots.txt of each authority of a queue.
SELECT robots.authority, robots.status, robots.fetched_at, robots.rules FROM robots
WHERE robots.bucket = %(bucket)b::int2 AND robots.qid = %(qid)b::int8 ORDER BY robots.authority LIMIT 1000

-- name: changes_of
-- Versions from the newest to the oldest after a given one: all, or of a resource, a host, a portal, or words. So many
-- versions are looked at.
SELECT version.resource, version.number, version.captured_at, encode(version.sha256, 'hex'), version.byte_size,
       version.media_type, version.noise, resource.url, resource.title,
       CASE WHEN version.number = resource.versions THEN round(resource.missed)::int8 ELSE 0 END
FROM (SELECT version.* FROM version
      WHERE (version.captured_at, version.resource, version.number)
            < (%(at)b::int8, %(resource)b::text COLLATE "C", %(number)b::int4)
        AND version.captured_at >= %(since)b::int8
      ORDER BY version.captured_at DESC, version.resource DESC, version.number DESC LIMIT %(most)b::int4) AS version
JOIN resource ON resource.resource = version.resource
WHERE (%(dataset)b::text IS NULL OR version.resource = %(dataset)b::text)
  AND (%(host)b::text IS NULL OR resource.host = %(host)b::text)
  AND (%(portal)b::text IS NULL OR EXISTS (SELECT FROM source WHERE source.resource = resource.resource
                                                               AND source.portal = %(portal)b::text))
  AND (%(words)b::text IS NULL OR EXISTS (SELECT FROM findable WHERE findable.resource = resource.resource
                                                               AND findable.words @@ %(words)b::text::tsquery))
ORDER BY version.captured_at DESC, version.resource DESC, version.number DESC LIMIT %(limit)b::int4

-- name: changes_among
-- The same for a resource, host, portal or words that few of these versions belong to: its resources are found first.
WITH named AS MATERIALIZED (
    SELECT resource.resource FROM resource WHERE resource.resource = %(dataset)b::text
    UNION ALL
    SELECT resource.resource FROM resource
    WHERE %(dataset)b::text IS NULL AND resource.host = %(host)b::text
    UNION ALL
    SELECT DISTINCT source.resource FROM source
    WHERE num_nonnulls(%(dataset)b::text, %(host)b::text) = 0 AND source.portal = %(portal)b::text
    UNION ALL
    SELECT findable.resource FROM findable
    WHERE num_nonnulls(%(dataset)b::text, %(host)b::text, %(portal)b::text) = 0
      AND findable.words @@ %(words)b::text::tsquery)
SELECT version.resource, version.number, version.captured_at, encode(version.sha256, 'hex'), version.byte_size,
       version.media_type, version.noise, resource.url, resource.title,
       CASE WHEN version.number = resource.versions THEN round(resource.missed)::int8 ELSE 0 END
FROM named
JOIN resource ON resource.resource = named.resource
JOIN version ON version.resource = resource.resource
WHERE (version.captured_at, version.resource, version.number)
      < (%(at)b::int8, %(resource)b::text COLLATE "C", %(number)b::int4)
  AND version.captured_at >= %(since)b::int8
  AND (%(host)b::text IS NULL OR resource.host = %(host)b::text)
  AND (%(portal)b::text IS NULL OR EXISTS (SELECT FROM source WHERE source.resource = resource.resource
                                                               AND source.portal = %(portal)b::text))
  AND (%(words)b::text IS NULL OR EXISTS (SELECT FROM findable WHERE findable.resource = resource.resource
                                                               AND findable.words @@ %(words)b::text::tsquery))
ORDER BY version.captured_at DESC, version.resource DESC, version.number DESC LIMIT %(limit)b::int4

-- name: changes_named
-- The same of resources by id or address, and of versions by id.
SELECT version.resource, version.number, version.captured_at, encode(version.sha256, 'hex'), version.byte_size,
       version.media_type, version.noise, resource.url, resource.title,
       CASE WHEN version.number = resource.versions THEN round(resource.missed)::int8 ELSE 0 END
FROM (SELECT version.resource, version.number
      FROM unnest(%(dataset)b::text[]) AS named JOIN version ON version.resource = named
      UNION
      SELECT version.resource, version.number
      FROM unnest(%(address)b::text[]) AS named JOIN resource ON resource.url = named
      JOIN version ON version.resource = resource.resource
      UNION
      SELECT split_part(named, '_', 1), split_part(named, '_', 2)::int4 FROM unnest(%(version)b::text[]) AS named)
     AS wanted
JOIN version ON version.resource = wanted.resource AND version.number = wanted.number
JOIN resource ON resource.resource = version.resource
WHERE (version.captured_at, version.resource, version.number)
      < (%(at)b::int8, %(resource)b::text COLLATE "C", %(number)b::int4)
  AND version.captured_at >= %(since)b::int8
ORDER BY version.captured_at DESC, version.resource DESC, version.number DESC LIMIT %(limit)b::int4

-- name: absences_of
-- When resources went (0) and came back (-1), in the same order and of the same, or of resources by id or address.
SELECT state.resource, state.number, state.at, resource.url, resource.title
FROM (SELECT gone.resource, 0 AS number, gone.gone_at AS at FROM resource AS gone WHERE gone.gone_at IS NOT NULL
      UNION ALL
      SELECT over.resource, 0, over.gone_at FROM resource_absence AS over
      UNION ALL
      SELECT over.resource, -1, over.back_at FROM resource_absence AS over) AS state
JOIN resource ON resource.resource = state.resource
WHERE (state.at, state.resource, state.number)
      < (%(at)b::int8, %(resource)b::text COLLATE "C", %(number)b::int4)
  AND state.at >= %(since)b::int8
  AND (%(datasets)b::text[] IS NULL OR state.resource = ANY(%(datasets)b::text[])
       OR resource.url = ANY(%(addresses)b::text[]))
  AND (%(host)b::text IS NULL OR resource.host = %(host)b::text)
  AND (%(portal)b::text IS NULL OR EXISTS (SELECT FROM source WHERE source.resource = resource.resource
                                                               AND source.portal = %(portal)b::text))
  AND (%(words)b::text IS NULL OR EXISTS (SELECT FROM findable WHERE findable.resource = resource.resource
                                                               AND findable.words @@ %(words)b::text::tsquery))
ORDER BY state.at DESC, state.resource DESC, state.number DESC LIMIT %(limit)b::int4

-- name: news
-- Resources that transactions since a given one have noted as changed; from which one on notes are still to come,
-- and whether notes are left at all.
SELECT EXISTS (SELECT FROM catalogue), pg_snapshot_xmin(now_seen.state)::text,
       pg_snapshot_xmax(now_seen.state)::text,
       ARRAY(SELECT news.name FROM catalogue_news AS news
             WHERE news.xid >= %(since)b::text::xid8 AND news.kind = 'resource' LIMIT %(most)b::int4)
FROM (SELECT pg_current_snapshot() AS state) AS now_seen

-- name: other_secrets
-- Whether a service that is connected to the database uses another secret than this.
SELECT FROM pg_locks
WHERE pg_locks.locktype = 'advisory' AND pg_locks.classid = %(class)b::int8::oid AND pg_locks.objsubid = 2
  AND pg_locks.objid <> (%(number)b::int4::int8 & 4294967295)::oid
  AND pg_locks.database = (SELECT pg_database.oid FROM pg_database WHERE pg_database.datname = current_database())
LIMIT 1

-- name: register_secret
-- Tells others which secret is used, as long as the connection lasts.
SELECT pg_advisory_lock_shared(%(class)b::int4, %(number)b::int4)
-- What servers said about the use of what they gave.

-- name: signals
-- What was said with captures, of those with which anything was said. In which bucket each is, is not known.
SELECT capture.capture::text, capture.signals FROM capture
WHERE capture.bucket = ANY(%(bucket)b::int2[]) AND capture.capture = ANY(%(capture)b::text[]::uuid[])
  AND capture.signals IS NOT NULL

-- name: newest
-- The captures that brought the newest versions of resources.
SELECT version.resource, version.capture::text
FROM resource JOIN version ON version.resource = resource.resource AND version.number = resource.versions
WHERE resource.resource = ANY(%(resource)b::text[])

-- name: search
-- Resources that have all of some words, the best first: those that are called so, then those that have the words, then
-- those with words that begin so; without words, those that changed last. A filter that is null lets all through.
WITH ranked AS (
    SELECT found.resource, max(found.rank) AS rank
    FROM ((SELECT findable.resource, 9::float4 AS rank FROM findable
           WHERE %(every)b::text <> '' AND findable.words @@ %(title)b::text::tsquery
           LIMIT %(most)b::int4)
          UNION ALL
          (SELECT findable.resource, 4 + ts_rank('{0.1, 0.2, 0.4, 1}', findable.words, %(exact)b::text::tsquery, 1)
           FROM findable WHERE findable.words @@ %(exact)b::text::tsquery LIMIT %(most)b::int4)
          UNION ALL
          (SELECT findable.resource, ts_rank('{0.1, 0.2, 0.4, 1}', findable.words, %(every)b::text::tsquery, 1)
                  + ts_rank('{0.1, 0.2, 0.4, 1}', findable.words, replace(%(exact)b::text, '&', '|')::tsquery, 1)
           FROM findable WHERE findable.words @@ %(every)b::text::tsquery LIMIT %(most)b::int4)
          UNION ALL
          (SELECT resource.resource, 0::float4 FROM resource WHERE %(every)b::text = ''
           ORDER BY resource.captured_at DESC NULLS LAST LIMIT %(most)b::int4)) AS found
    GROUP BY found.resource)
SELECT resource.resource
FROM ranked JOIN resource ON resource.resource = ranked.resource
WHERE (%(state)b::text IS NULL OR {state} = %(state)b::text)
  AND (%(type)b::text IS NULL OR resource.media_type = %(type)b::text)
  AND (%(changed)b::text IS NULL OR {changed} = %(changed)b::text)
  AND (%(size)b::text IS NULL OR %(size)b::text = (SELECT {size} FROM version WHERE version.resource = resource.resource
                                                                     AND version.number = resource.versions))
  AND (%(portal)b::text IS NULL OR EXISTS (SELECT FROM source WHERE source.resource = resource.resource
                                                               AND source.portal = %(portal)b::text))
  AND ((%(publisher)b::text IS NULL AND %(licence)b::text IS NULL) OR EXISTS (
        SELECT FROM offered
        JOIN described ON described.portal = offered.portal AND described.record = offered.record
        WHERE offered.url = resource.url
          AND (%(publisher)b::text IS NULL OR described.told ->> 'publisher_name' = %(publisher)b::text)
          AND (%(licence)b::text IS NULL OR described.told -> 'forms' @> jsonb_build_array(
                jsonb_build_object('url', offered.url, 'licence', %(licence)b::text)))))
ORDER BY ranked.rank DESC, resource.captured_at DESC NULLS LAST, resource.resource LIMIT %(limit)b::int4

-- name: hits
-- Some resources, in the order given, and which of their columns have one of the words.
SELECT hit.resource, hit.url, hit.host, hit.title, hit.state, hit.media_type, hit.versions, hit.captured_at,
       hit.trouble, named.columns
FROM unnest(%(resource)b::text[]) WITH ORDINALITY AS wanted (resource, place)
JOIN resource AS hit ON hit.resource = wanted.resource
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(DISTINCT col.value ->> 'name'), '{}') AS columns
    FROM profile
    CROSS JOIN LATERAL jsonb_array_elements(profile.profile) AS tab
    CROSS JOIN LATERAL jsonb_array_elements(coalesce(tab.value -> 'columns', '[]')) AS col
    WHERE profile.sha256 = hit.sha256 AND profile.kind = 'table'
      AND array_to_tsvector(search_words(col.value ->> 'name')) @@ %(any)b::text::tsquery) AS named
ORDER BY wanted.place

-- name: facets
-- How many of some resources have each value of a facet, the most frequent values.
WITH wanted AS MATERIALIZED (
    SELECT resource.resource, resource.url, resource.state, resource.trouble, resource.captured_at, resource.media_type,
           resource.versions
    FROM resource WHERE resource.resource = ANY(%(resource)b::text[])),
told AS MATERIALIZED (
    SELECT wanted.resource, described.told ->> 'publisher_name' AS publisher, form.value ->> 'licence' AS licence
    FROM wanted
    JOIN offered ON offered.url = wanted.url
    JOIN described ON described.portal = offered.portal AND described.record = offered.record
    LEFT JOIN LATERAL jsonb_array_elements(described.told -> 'forms') AS form (value)
         ON form.value ->> 'url' = offered.url),
pairs AS (
    SELECT 'portal' AS facet, source.portal AS value, source.resource
    FROM wanted JOIN source ON source.resource = wanted.resource
    UNION SELECT 'publisher', told.publisher, told.resource FROM told
    UNION SELECT 'licence', told.licence, told.resource FROM told
    UNION ALL SELECT 'type', resource.media_type, resource.resource FROM wanted AS resource
    UNION ALL SELECT 'state', {state}, resource.resource FROM wanted AS resource
    UNION ALL SELECT 'changed', {changed}, resource.resource FROM wanted AS resource
    UNION ALL
    SELECT 'size', {size}, version.resource
    FROM wanted JOIN version ON version.resource = wanted.resource AND version.number = wanted.versions),
counted AS (
    SELECT pairs.facet, pairs.value, count(*)::int8 AS n,
           row_number() OVER (PARTITION BY pairs.facet ORDER BY count(*) DESC, pairs.value) AS place
    FROM pairs WHERE pairs.value IS NOT NULL GROUP BY pairs.facet, pairs.value)
SELECT counted.facet, counted.value, counted.n FROM counted WHERE counted.place <= %(values)b::int4
ORDER BY counted.facet, counted.place

-- name: words
-- A search as the words that are looked for, and as the whole title.
SELECT search_words(%(text)b::text), whole_title(%(text)b::text)
