-- Records of catalogues as they came. `{is_stored}` leaves out what is being forgotten.

-- name: put_source_records
-- A version more of each record that is not as it was. What was forgotten does not come again, nor its numbers.
INSERT INTO source_record (resource, number, portal, iri, record, catalogue, mapping, captured_at, media_type, sha256,
                           byte_size, body, content)
SELECT new.resource, greatest(latest.number, taken.number, 0) + 1, portal.portal, new.iri, new.record, new.catalogue,
       new.mapping, %(harvest)b::int8, new.media_type, new.sha256, new.byte_size, new.body, new.content
FROM unnest(%(resource)b::text[], %(iri)b::text[], %(record)b::text[], %(catalogue)b::text[], %(mapping)b::text[],
            %(media_type)b::text[], %(sha256)b::bytea[], %(byte_size)b::int8[], %(body)b::bytea[],
            %(content)b::bytea[])
     AS new (resource, iri, record, catalogue, mapping, media_type, sha256, byte_size, body, content)
     JOIN portal ON portal.url = %(url)b::text
     LEFT JOIN LATERAL (
         SELECT kept.number, kept.sha256, kept.mapping, kept.content FROM source_record AS kept
         WHERE kept.resource = new.resource ORDER BY kept.number DESC LIMIT 1
     ) AS latest ON true
     LEFT JOIN LATERAL (
         SELECT max(forgotten.last_number) AS number, coalesce(bool_or(forgotten.blocked), false) AS blocked,
                coalesce(bool_or(body.sha256 = new.sha256), false) AS has_body
         FROM forgotten LEFT JOIN forgotten_body AS body
              ON body.forgotten = forgotten.forgotten AND forgotten.number IS NOT NULL
         WHERE forgotten.resource = new.resource
     ) AS taken ON true
WHERE NOT taken.blocked AND NOT taken.has_body
  AND (latest.sha256, latest.mapping) IS DISTINCT FROM (new.sha256, new.mapping)
  AND (latest.content, latest.mapping) IS DISTINCT FROM (coalesce(new.content, ''::bytea), new.mapping)
ON CONFLICT (resource, number) DO NOTHING

-- name: find_record
-- What is known of a record that was kept.
SELECT kept.iri, described.title, described.gone_at, kept.captured_at
FROM source_record AS kept
     LEFT JOIN described ON described.portal = kept.portal AND described.record = kept.record
WHERE kept.resource = %(resource)b::text
  AND {is_stored}
ORDER BY kept.number LIMIT 1

-- name: record_versions
-- The versions of a record, oldest first.
SELECT kept.number, kept.captured_at, encode(kept.sha256, 'hex'), kept.byte_size, kept.media_type
FROM source_record AS kept
WHERE kept.resource = %(resource)b::text
  AND {is_stored}
ORDER BY kept.number

-- name: record_body
-- One version of a record.
SELECT kept.body FROM source_record AS kept
WHERE kept.resource = %(resource)b::text AND kept.sha256 = %(sha256)b::bytea LIMIT 1

-- name: catalogue_of
-- What the IRIs of a portal's records begin with: its root, whatever the address by which it was found.
SELECT kept.catalogue FROM source_record AS kept JOIN portal ON portal.portal = kept.portal
WHERE portal.url = %(url)b::text ORDER BY kept.resource LIMIT 1

-- name: records_at
-- The version of each record that was the latest at a time; without a body where that is too large.
SELECT DISTINCT ON (kept.resource) kept.resource, kept.iri, kept.record, kept.mapping, kept.catalogue, kept.media_type,
       CASE WHEN kept.byte_size <= %(most)b::int8 THEN kept.body END, kept.captured_at
FROM source_record AS kept JOIN portal ON portal.portal = kept.portal
WHERE portal.url = %(url)b::text AND kept.resource = ANY(%(resource)b::text[]) AND kept.captured_at <= %(at)b::int8
  AND {is_stored}
ORDER BY kept.resource, kept.number DESC

-- name: latest_records
-- The latest version of each record of a catalogue, some after another: of all, or of those that have not vanished.
SELECT DISTINCT ON (kept.resource) kept.resource, kept.iri, kept.record, kept.mapping, kept.catalogue, kept.media_type,
       kept.body
FROM source_record AS kept JOIN portal ON portal.portal = kept.portal
WHERE portal.url = %(url)b::text AND kept.resource > %(after)b::text AND {is_stored}
  AND (NOT %(present)b::bool
       OR EXISTS (SELECT FROM described WHERE described.portal = kept.portal AND described.record = kept.record
                                          AND described.gone_at IS NULL))
ORDER BY kept.resource, kept.number DESC LIMIT %(limit)b::int8

-- name: page_records
-- The same of one page, all or those that changed since a time.
SELECT latest.resource, latest.iri, latest.record, latest.mapping, latest.catalogue, latest.media_type, latest.body
FROM (SELECT DISTINCT ON (kept.resource) kept.*
      FROM source_record AS kept JOIN portal ON portal.portal = kept.portal
           JOIN described ON described.portal = kept.portal AND described.record = kept.record
      WHERE portal.url = %(url)b::text AND described.gone_at IS NULL
        AND {is_stored}
      ORDER BY kept.resource, kept.number DESC) AS latest
WHERE latest.captured_at >= %(since)b::int8
ORDER BY latest.resource OFFSET %(start)b::int8 LIMIT %(limit)b::int8

-- name: count_page_records
-- How many records of a catalogue are present, all or those that changed since a time; none if it has no records.
SELECT count(*) FROM (
    SELECT DISTINCT ON (kept.resource) kept.captured_at
    FROM source_record AS kept JOIN portal ON portal.portal = kept.portal
         JOIN described ON described.portal = kept.portal AND described.record = kept.record
    WHERE portal.url = %(url)b::text AND described.gone_at IS NULL
      AND {is_stored}
    ORDER BY kept.resource, kept.number DESC) AS latest
WHERE latest.captured_at >= %(since)b::int8

-- name: count_records
-- Records, their versions and catalogues, and their bytes.
SELECT count(*) FILTER (WHERE kept.number = 1), count(*), count(DISTINCT kept.portal),
       coalesce(sum(kept.byte_size), 0)::int8, coalesce(sum(octet_length(kept.body)), 0)::int8
FROM source_record AS kept

-- name: damaged_records
-- Some versions of records after another, to be compared with their digests.
SELECT kept.resource, kept.number, kept.iri, kept.sha256, kept.body
FROM source_record AS kept
WHERE (kept.resource, kept.number) > (%(after)b::text, %(number)b::int4)
ORDER BY kept.resource, kept.number LIMIT %(limit)b::int8
