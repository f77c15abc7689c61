-- What the catalogue graph is made of, some subjects at a time.

-- name: read_suspects
-- Bodies of resources that were not believed until a time, oldest first.
SELECT suspect.resource, suspect.seen_at, encode(suspect.sha256, 'hex'), suspect.byte_size, suspect.media_type,
       suspect.reason
FROM suspect WHERE suspect.resource = ANY(%(resource)b::text[]) AND suspect.seen_at <= %(at)b::int8
ORDER BY suspect.resource, suspect.seen_at

-- name: read_gone
-- When servers said that resources were gone, each time, oldest first; without an end while it lasts.
SELECT away.resource, away.gone_at, away.back_at
FROM (SELECT over.resource, over.gone_at, over.back_at FROM resource_absence AS over
      WHERE over.resource = ANY(%(resource)b::text[])
      UNION ALL
      SELECT resource.resource, resource.gone_at, NULL FROM resource
      WHERE resource.resource = ANY(%(resource)b::text[]) AND resource.gone_at IS NOT NULL) AS away
ORDER BY away.resource, away.gone_at

-- name: read_profiles
-- What is in bodies.
SELECT encode(profile.sha256, 'hex'), profile.profile, profile.packed FROM profile
WHERE profile.kind = 'content' AND profile.sha256 = ANY(%(sha256)b::bytea[])

-- name: page_resources_at
-- Resources after a given one as they were known at a time: those of that time, with the sources that named them then.
-- When one was stopped is not known; the rate of change is that of the last visit, if that was
-- before. A title stays as it was first given, by a source that had one.
SELECT resource.resource, resource.url,
       CASE WHEN resource.state = 'stopped' THEN 'stopped'
            WHEN resource.gone_at <= %(at)b::int8
                 OR EXISTS (SELECT FROM resource_absence AS away
                            WHERE away.resource = resource.resource AND away.gone_at <= %(at)b::int8
                              AND away.back_at > %(at)b::int8) THEN 'gone'
            ELSE 'active' END,
       CASE WHEN EXISTS (SELECT FROM source
                         WHERE source.resource = resource.resource AND source.title IS NOT NULL
                           AND source.first_seen <= %(at)b::int8) THEN resource.title END,
       NULL, NULL, resource.added_at, NULL,
       CASE WHEN resource.tried_at <= %(at)b::int8 THEN resource.change_rate END, 0, NULL, NULL,
       coalesce((SELECT jsonb_agg(jsonb_build_array(source.source, source.portal, source.title, source.format)
                                  ORDER BY source.first_seen, source.source)
                 FROM source WHERE source.resource = resource.resource AND source.first_seen <= %(at)b::int8), '[]')
FROM kept_resource AS resource
WHERE resource.resource > %(after)b::text
  AND (resource.added_at <= %(at)b::int8
       OR EXISTS (SELECT FROM version
                  WHERE version.resource = resource.resource AND version.captured_at <= %(at)b::int8))
ORDER BY resource.resource LIMIT %(limit)b::int4

-- name: portals
-- All portals, when they were first seen, and when last as a whole.
SELECT portal.portal, portal.url, portal.first_seen, portal.walked_at FROM portal ORDER BY portal.portal

-- name: page_described
-- What a portal described until a time, page by page; each by the IRI that it had then.
SELECT described.record, coalesce(earlier.iri, described.iri)
FROM described
     LEFT JOIN LATERAL (SELECT earlier.iri FROM earlier_description AS earlier
                        WHERE earlier.portal = described.portal AND earlier.record = described.record
                          AND earlier.url = '' AND earlier.until > %(at)b::int8
                        ORDER BY earlier.until LIMIT 1) AS earlier ON true
WHERE described.portal = %(portal)b::int8 AND described.record > %(after)b::text
  AND described.first_seen <= %(at)b::int8
ORDER BY described.record LIMIT %(limit)b::int4

-- name: read_titles
-- What a portal called datasets, each title from a harvest until another, the present ones without an end.
SELECT told.record, told.title, told.told_at, told.until
FROM (SELECT earlier.record, earlier.title, earlier.told_at, earlier.until FROM earlier_description AS earlier
      WHERE earlier.portal = %(portal)b::int8 AND earlier.record = ANY(%(record)b::text[]) AND earlier.url = ''
      UNION ALL
      SELECT described.record, described.title, described.told_at, NULL FROM described
      WHERE described.portal = %(portal)b::int8 AND described.record = ANY(%(record)b::text[])) AS told
ORDER BY told.record, told.told_at

-- name: read_listings
-- When datasets of a portal and their files were first seen, when each left and came back, and when it left for good.
SELECT told.record, told.url, told.first_seen, told.gone_at, coalesce(away.gone_at, '{}'), coalesce(away.back_at, '{}')
FROM (SELECT described.portal, described.record, '' AS url, described.first_seen, described.gone_at FROM described
      WHERE described.portal = %(portal)b::int8 AND described.record = ANY(%(record)b::text[])
      UNION ALL
      SELECT offered.portal, offered.record, offered.url, coalesce(offered.first_seen, offered.last_seen), offered.gone_at
      FROM offered
      WHERE offered.portal = %(portal)b::int8 AND offered.record = ANY(%(record)b::text[])) AS told
     LEFT JOIN LATERAL (SELECT array_agg(absence.gone_at ORDER BY absence.gone_at) AS gone_at,
                               array_agg(absence.back_at ORDER BY absence.gone_at) AS back_at
                        FROM absence WHERE absence.portal = told.portal AND absence.record = told.record
                                       AND absence.url = told.url) AS away ON true
ORDER BY told.record, told.url

-- name: read_measures
-- Measures of subjects that have held since a time or longer.
SELECT measure.subject, measure.metric, measure.value, measure.measured_at
FROM measure WHERE measure.subject = ANY(%(subject)b::text[]) AND measure.measured_at <= %(at)b::int8
ORDER BY measure.subject, measure.metric
