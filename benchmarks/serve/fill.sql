-- Fills an archive without a crawl, for measurements only.

-- name: stop_triggers
-- No trigger hears of what is written.
DO $$ DECLARE name text; BEGIN
    FOREACH name IN ARRAY '{resource,source,described,version}'::text[] LOOP
        EXECUTE format('ALTER TABLE %I DISABLE TRIGGER USER', name);
    END LOOP;
END $$

-- name: start_triggers
-- They hear again.
DO $$ DECLARE name text; BEGIN
    FOREACH name IN ARRAY '{resource,source,described,version}'::text[] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE TRIGGER USER', name);
    END LOOP;
END $$

-- name: portal
-- One portal, seen as a whole just now.
INSERT INTO portal (url, kind, first_seen, walked_at)
VALUES (%(url)b::text, 'ckan', %(now)b::int8, %(now)b::int8) RETURNING portal

-- name: copy_resources
-- Where resources are written to.
COPY resource (resource, url, host, title, expected, added_at, versions, sha256, media_type, captured_at, change_rate,
               visited_at, tried_at, next_visit) FROM STDIN (FORMAT binary)

-- name: copy_sources
-- Where their sources are written to.
COPY source (resource, source, portal, title, format, first_seen, last_seen) FROM STDIN (FORMAT binary)

-- name: copy_described
-- Where a portal's descriptions of them are written to.
COPY described (portal, record, iri, title, first_seen, last_seen, told_at) FROM STDIN (FORMAT binary)

-- name: versions
-- The versions that each resource says it has, one a day up to its last one, of a few bodies in turn.
INSERT INTO version (resource, number, captured_at, sha256, byte_size, media_type, told_type, capture)
SELECT made.resource, made.number, made.captured_at, body.sha256, body.size, 'text/csv', 'text/csv; charset=utf-8',
       (lpad(to_hex(made.captured_at), 12, '0') || '7000' || substr(md5(made.resource || made.number), 1, 16))::uuid
FROM (SELECT resource.resource, part.number,
             resource.captured_at - (resource.versions - part.number) * 86400000::int8 AS captured_at,
             (hashtext(resource.resource) & 1023) + resource.versions - part.number AS turn
      FROM resource CROSS JOIN LATERAL generate_series(1, resource.versions) AS part (number)
      WHERE resource.sha256 IS NULL) AS made
JOIN (SELECT blob.sha256, blob.size, row_number() OVER (ORDER BY blob.sha256) - 1 AS place,
             count(*) OVER () AS all_of_them FROM blob) AS body
  ON body.place = made.turn % body.all_of_them

-- name: current
-- What each resource has now is what its last version has.
UPDATE resource SET sha256 = version.sha256 FROM version
WHERE resource.sha256 IS NULL AND version.resource = resource.resource AND version.number = resource.versions

-- name: words
-- The words by which they are found.
SELECT note_words(%(resource)b::text[])

-- name: captures
-- The attempt that brought each version; one in fifty of them failed, so that there is trouble to be shown.
INSERT INTO capture (bucket, capture, qid, crawl, uid, started_at, ended_at, outcome, status, depth, bytes, sha256, url,
                     told_type, found_type, reason, worker, agent)
SELECT url.bucket, version.capture, url.qid, url.crawl, url.uid, version.captured_at, version.captured_at + 80,
       CASE WHEN url.uid %% 50 = 0 THEN 5 ELSE 1 END, CASE WHEN url.uid %% 50 = 0 THEN 500 ELSE 200 END, 0,
       version.byte_size, version.sha256, url.url, version.told_type, version.media_type,
       CASE WHEN url.uid %% 50 = 0 THEN 'HTTP status 500' ELSE '' END, 'filled', 'tamias'
FROM url
JOIN resource ON resource.url = url.url
JOIN version ON version.resource = resource.resource
WHERE url.bucket = %(bucket)b::int2
ON CONFLICT DO NOTHING

-- name: recount
-- The counts that the figures come from, folded.
SELECT recount()

-- name: settle
-- What a database that has stood for a while knows of its tables.
ANALYZE resource, version, source, described, capture, url, host, queue, findable

-- name: documents
-- Crawled documents with statements, so many on each host of the default crawl; one in a hundred failed.
WITH made AS (
    SELECT host.bucket, host.qid, part.number,
           'http://' || host.hkey || '/' || part.number || '.ttl' AS url,
           %(now)b::int8 - (abs(hashtext(host.hkey || part.number)::int8) %% 864000000) AS started_at,
           ('x' || substr(md5(host.hkey || part.number), 1, 16))::bit(64)::int8 AS uid
    FROM host CROSS JOIN LATERAL generate_series(1, %(each)b::int4) AS part (number)
    WHERE host.bucket = %(bucket)b::int2 AND host.hkey LIKE 'doc%%'),
known AS (
    INSERT INTO url (bucket, qid, crawl, uid, due, first_seen, score, status, depth, url)
    SELECT made.bucket, made.qid, 1, made.uid, 9223372036854775807, made.started_at, 1,
           CASE WHEN made.number %% 100 = 0 THEN 5 ELSE 1 END, made.number %% 6, made.url FROM made),
tried AS (
    INSERT INTO capture (bucket, capture, qid, crawl, uid, started_at, ended_at, outcome, status, depth, bytes, quads,
                         links, url, told_type, found_type, reason, worker, agent)
    SELECT made.bucket,
           (lpad(to_hex(made.started_at), 12, '0') || '7000' || substr(md5(made.url), 1, 16))::uuid,
           made.qid, 1, made.uid, made.started_at, made.started_at + 70,
           CASE WHEN made.number %% 100 = 0 THEN 5 ELSE 1 END, CASE WHEN made.number %% 100 = 0 THEN 500 ELSE 200 END,
           made.number %% 6, 2000, CASE WHEN made.number %% 100 = 0 THEN 0 ELSE 12 END, 5, made.url, 'text/turtle',
           'text/turtle', CASE WHEN made.number %% 100 = 0 THEN '500 Internal Server Error' ELSE '' END, 'filled',
           'tamias'
    FROM made RETURNING bucket, capture, qid, started_at, url, quads)
INSERT INTO current_document (bucket, document_key, qid, started_at, capture, segment, frame, start, length, cut, document)
SELECT tried.bucket, substr(sha256(convert_to(tried.url, 'UTF8')), 1, 16), tried.qid, tried.started_at, tried.capture,
       1, 0, 0, 100, false, tried.url
FROM tried WHERE tried.quads > 0

-- name: count_documents
-- The queues know how many there are.
UPDATE queue SET known = queue.known + %(each)b::int4 FROM host
WHERE queue.bucket = %(bucket)b::int2 AND host.bucket = queue.bucket AND host.qid = queue.qid AND queue.crawl = 1

-- name: host_links
-- Every host of the default crawl links to some others.
INSERT INTO host_link (from_host, to_host, links)
SELECT host.hkey, 'doc' || ((substr(host.hkey, 4, strpos(host.hkey, '.') - 4)::int + part.number * 37) %% %(hosts)b::int4)
       || '.example', part.number
FROM host CROSS JOIN generate_series(1, 10) AS part (number)
WHERE host.bucket = %(bucket)b::int2 AND host.hkey LIKE 'doc%%' ON CONFLICT DO NOTHING

-- name: settle_documents
-- What a database that has stood for a while knows of these tables.
ANALYZE url, capture, current_document, queue, host, host_link
