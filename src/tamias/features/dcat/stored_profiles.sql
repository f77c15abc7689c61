-- What was found out about the content of versions.

-- name: forget_profiled
-- Bodies that came again wait for nothing.
DELETE FROM profile_due USING profile WHERE profile.sha256 = profile_due.sha256 AND profile.kind = 'content'

-- name: unprofiled
-- Bodies of versions that wait for their profile, the newest first.
SELECT encode(profile_due.sha256, 'hex'), profile_due.media_type, coalesce(resource.url, ''),
       (SELECT version.told_type FROM version
        WHERE version.resource = profile_due.resource AND version.sha256 = profile_due.sha256 LIMIT 1)
FROM profile_due LEFT JOIN resource ON resource.resource = profile_due.resource
ORDER BY profile_due.captured_at DESC LIMIT %(limit)b::int4

-- name: keep_profiles
-- What some bodies hold; they wait no longer.
WITH done AS (DELETE FROM profile_due WHERE profile_due.sha256 = ANY(%(sha256)b::bytea[]))
INSERT INTO profile (sha256, kind, made_at, profile, packed)
SELECT told.sha256, told.kind, %(now)b::int8, told.profile, told.packed
FROM unnest(%(sha256)b::bytea[], %(kind)b::text[], %(profile)b::jsonb[], %(packed)b::bytea[])
     AS told (sha256, kind, profile, packed)
ORDER BY told.sha256, told.kind
ON CONFLICT (sha256, kind) DO UPDATE
SET made_at = excluded.made_at, profile = excluded.profile, packed = excluded.packed

-- name: read_profile
-- The same, read back.
SELECT profile.profile, profile.packed FROM profile WHERE profile.sha256 = %(sha256)b::bytea AND profile.kind = 'content'
