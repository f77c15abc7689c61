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
COPY described (portal, record, iri, title, first_seen, last_seen) FROM STDIN (FORMAT binary)

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
