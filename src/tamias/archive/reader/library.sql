-- What readers of the archive ask.

-- name: find_resource
-- A resource by its name or its address; the name counts first.
SELECT resource.resource FROM resource
WHERE resource.resource = %(resource)b::text OR resource.url = %(url)b::text
ORDER BY resource.resource <> %(resource)b::text LIMIT 1

-- name: read_trouble
-- Why the last visit of a resource brought nothing.
SELECT resource.trouble FROM resource WHERE resource.resource = %(resource)b::text

-- name: is_portal
-- Whether anything is known of a portal.
SELECT EXISTS (SELECT FROM source WHERE source.portal = %(portal)b::text)
    OR EXISTS (SELECT FROM portal WHERE portal.url = %(portal)b::text)

-- name: portal_between
-- What a portal names, and the content of each at two times: none while its server said that it was gone, nor while
-- the portal did not list it, each time that it was so. What no harvest describes has left the portal when its last
-- whole harvest did not see it. A version that is noise has the content of the one before.
WITH asked AS (SELECT * FROM (VALUES (1, %(before)b::int8), (2, %(after)b::int8)) AS times (place, at)),
listing AS (
    SELECT offered.url, asked.place,
           bool_or(greatest(offered.first_seen, described.first_seen) <= asked.at
                   AND coalesce(least(offered.gone_at, described.gone_at) > asked.at, true)
                   AND NOT EXISTS (SELECT FROM absence
                                   WHERE absence.portal = offered.portal AND absence.record = offered.record
                                     AND absence.url IN ('', offered.url)
                                     AND absence.gone_at <= asked.at AND absence.back_at > asked.at)) AS is_listed
    FROM portal JOIN offered ON offered.portal = portal.portal
         JOIN described ON described.portal = offered.portal AND described.record = offered.record
         CROSS JOIN asked
    WHERE portal.url = %(portal)b::text
    GROUP BY offered.url, asked.place
),
named AS (
    SELECT resource.resource, resource.url, resource.gone_at,
           CASE WHEN max(source.last_seen) < min(portal.walked_at) THEN max(source.last_seen) + 1 END AS left_at
    FROM source
    JOIN resource ON resource.resource = source.resource
    LEFT JOIN portal ON portal.url = source.portal
    WHERE source.portal = %(portal)b::text
    GROUP BY resource.resource
)
SELECT named.url, max(content.digest) FILTER (WHERE asked.place = 1),
       max(content.digest) FILTER (WHERE asked.place = 2)
FROM named CROSS JOIN asked
     LEFT JOIN listing ON listing.url = named.url AND listing.place = asked.place
     LEFT JOIN LATERAL (SELECT encode(coalesce(version.fingerprint, version.sha256), 'hex') AS digest FROM version
                        WHERE version.resource = named.resource AND version.captured_at <= asked.at
                          AND version.noise IS NULL
                        ORDER BY version.number DESC LIMIT 1) AS content
         ON coalesce(listing.is_listed, coalesce(named.left_at > asked.at, true))
            AND coalesce(named.gone_at > asked.at, true)
            AND NOT EXISTS (SELECT FROM resource_absence
                            WHERE resource_absence.resource = named.resource
                              AND resource_absence.gone_at <= asked.at AND resource_absence.back_at > asked.at)
GROUP BY named.url

-- name: datasets_at
-- The datasets that a portal listed at a time, after a given one, in the words that it used then or, where none are
-- stored of that time, in the earliest later ones.
SELECT described.record, coalesce(earlier.iri, described.iri), coalesce(earlier.title, described.title),
       coalesce(earlier.told_at, described.told_at)
FROM portal JOIN described ON described.portal = portal.portal
     LEFT JOIN LATERAL (SELECT earlier.* FROM earlier_description AS earlier
                        WHERE earlier.portal = described.portal AND earlier.record = described.record
                          AND earlier.url = '' AND earlier.until > %(at)b::int8
                        ORDER BY earlier.until LIMIT 1) AS earlier ON true
WHERE portal.url = %(portal)b::text AND described.record > %(after)b::text
  AND described.first_seen <= %(at)b::int8 AND coalesce(described.gone_at > %(at)b::int8, true)
  AND NOT EXISTS (SELECT FROM absence
                  WHERE absence.portal = described.portal AND absence.record = described.record AND absence.url = ''
                    AND absence.gone_at <= %(at)b::int8 AND absence.back_at > %(at)b::int8)
ORDER BY described.record LIMIT %(limit)b::int4

-- name: files_at
-- The files of these datasets at a time, each with the version that was current, and whether its server had it.
SELECT offered.record, offered.url, CASE WHEN earlier.until IS NULL THEN offered.title ELSE earlier.title END,
       CASE WHEN earlier.until IS NULL THEN offered.format ELSE earlier.format END,
       coalesce(earlier.told_at, offered.told_at), version.resource || '_' || version.number,
       version.captured_at, encode(version.sha256, 'hex'), version.byte_size,
       coalesce(resource.gone_at <= %(at)b::int8, false)
       OR EXISTS (SELECT FROM resource_absence
                  WHERE resource_absence.resource = resource.resource AND resource_absence.gone_at <= %(at)b::int8
                    AND resource_absence.back_at > %(at)b::int8)
FROM portal JOIN offered ON offered.portal = portal.portal
     LEFT JOIN LATERAL (SELECT earlier.* FROM earlier_description AS earlier
                        WHERE earlier.portal = offered.portal AND earlier.record = offered.record
                          AND earlier.url = offered.url AND earlier.until > %(at)b::int8
                        ORDER BY earlier.until LIMIT 1) AS earlier ON true
     LEFT JOIN resource ON resource.url = offered.url
     LEFT JOIN LATERAL (SELECT version.* FROM version
                        WHERE version.resource = resource.resource AND version.captured_at <= %(at)b::int8
                        ORDER BY version.number DESC LIMIT 1) AS version ON true
WHERE portal.url = %(portal)b::text AND offered.record = ANY(%(record)b::text[])
  AND coalesce(offered.first_seen <= %(at)b::int8, true) AND coalesce(offered.gone_at > %(at)b::int8, true)
  AND NOT EXISTS (SELECT FROM absence
                  WHERE absence.portal = offered.portal AND absence.record = offered.record
                    AND absence.url = offered.url
                    AND absence.gone_at <= %(at)b::int8 AND absence.back_at > %(at)b::int8)
ORDER BY offered.record, offered.url

-- name: absences
-- Every time that a dataset or a file of a portal was not there, the latest first; without an end where it lasts. The
-- dataset is named as it was when that began.
SELECT away.record, coalesce(earlier.iri, described.iri), coalesce(earlier.title, described.title), away.url, away.gone_at, away.back_at
FROM portal
     JOIN LATERAL (
         SELECT absence.record, absence.url, absence.gone_at, absence.back_at FROM absence
         WHERE absence.portal = portal.portal
         UNION ALL
         SELECT gone.record, '', gone.gone_at, NULL FROM described AS gone
         WHERE gone.portal = portal.portal AND gone.gone_at IS NOT NULL
         UNION ALL
         SELECT offered.record, offered.url, offered.gone_at, NULL FROM offered
         WHERE offered.portal = portal.portal AND offered.gone_at IS NOT NULL
     ) AS away ON true
     JOIN described ON described.portal = portal.portal AND described.record = away.record
     LEFT JOIN LATERAL (SELECT earlier.* FROM earlier_description AS earlier
                        WHERE earlier.portal = described.portal AND earlier.record = described.record
                          AND earlier.url = '' AND earlier.until > away.gone_at
                        ORDER BY earlier.until LIMIT 1) AS earlier ON true
WHERE portal.url = %(portal)b::text
ORDER BY away.gone_at DESC, away.record, away.url LIMIT %(limit)b::int4 OFFSET %(skip)b::int4
