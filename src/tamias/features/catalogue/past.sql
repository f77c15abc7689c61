-- States of the past.

-- name: catalogue_around
-- The last moment up to a time at which the catalogue changed, and the first after it: between them its state is one.
-- All transactions older than `seen` are in it.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text, max(each.at) FILTER (WHERE each.at <= %(at)b::int8),
       min(each.at) FILTER (WHERE each.at > %(at)b::int8)
FROM (SELECT version.captured_at AS at FROM version
      UNION ALL SELECT unnest(ARRAY[resource.added_at, resource.tried_at, resource.gone_at]) FROM resource
      UNION ALL SELECT unnest(ARRAY[away.gone_at, away.back_at]) FROM resource_absence AS away
      UNION ALL SELECT source.first_seen FROM source
      UNION ALL SELECT suspect.seen_at FROM suspect
      UNION ALL SELECT unnest(ARRAY[portal.first_seen, portal.walked_at]) FROM portal
      UNION ALL SELECT unnest(ARRAY[described.first_seen, described.gone_at, described.told_at]) FROM described
      UNION ALL SELECT unnest(ARRAY[told.until, told.told_at]) FROM earlier_description AS told
      UNION ALL SELECT unnest(ARRAY[offered.first_seen, offered.last_seen, offered.gone_at]) FROM offered
      UNION ALL SELECT unnest(ARRAY[absence.gone_at, absence.back_at]) FROM absence
      UNION ALL SELECT measure.measured_at FROM measure
      UNION ALL SELECT site_dataset.seen_at FROM site_dataset) AS each

-- name: changed_since
-- Whether the catalogue has changed since, also of the past; and so where nobody notes its changes. And how much was
-- ever forgotten.
SELECT NOT EXISTS (SELECT FROM catalogue)
       OR EXISTS (SELECT FROM catalogue_news WHERE catalogue_news.xid >= %(seen)b::text::xid8),
       (SELECT count(*) FROM forgotten)
