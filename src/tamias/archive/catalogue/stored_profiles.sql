-- What was found out about the content of versions.

-- name: unprofiled
-- Bodies of current versions that nobody has looked into yet, the newest first.
SELECT encode(resource.sha256, 'hex'), min(resource.media_type), min(resource.url)
FROM resource
WHERE resource.sha256 IS NOT NULL
  AND NOT EXISTS (SELECT FROM profile WHERE profile.sha256 = resource.sha256 AND profile.kind = 'content')
GROUP BY resource.sha256 ORDER BY max(resource.captured_at) DESC LIMIT %(limit)b::int4

-- name: keep_profile
-- What one body holds.
INSERT INTO profile (sha256, kind, made_at, profile)
SELECT %(sha256)b::bytea, told.kind, %(now)b::int8, told.profile
FROM unnest(%(kind)b::text[], %(profile)b::jsonb[]) AS told (kind, profile)
ON CONFLICT (sha256, kind) DO UPDATE SET made_at = excluded.made_at, profile = excluded.profile

-- name: read_profile
-- The same, read back.
SELECT profile.profile FROM profile WHERE profile.sha256 = %(sha256)b::bytea AND profile.kind = 'content'
