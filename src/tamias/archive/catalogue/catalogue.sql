-- What the catalogue graph is made of, some subjects at a time.

-- name: read_suspects
-- Bodies of resources that were not believed, oldest first.
SELECT suspect.resource, suspect.seen_at, encode(suspect.sha256, 'hex'), suspect.byte_size, suspect.media_type,
       suspect.reason
FROM suspect WHERE suspect.resource = ANY(%(resource)b::text[]) ORDER BY suspect.resource, suspect.seen_at

-- name: read_profiles
-- What is in bodies.
SELECT encode(profile.sha256, 'hex'), profile.profile FROM profile
WHERE profile.kind = 'content' AND profile.sha256 = ANY(%(sha256)b::bytea[])

-- name: portals
-- All portals, when they were first seen, and when last as a whole.
SELECT portal.portal, portal.url, portal.first_seen, portal.walked_at FROM portal ORDER BY portal.portal

-- name: page_described
-- What a portal describes, page by page.
SELECT described.record, described.iri FROM described
WHERE described.portal = %(portal)b::int8 AND described.record > %(after)b::text
ORDER BY described.record LIMIT %(limit)b::int4
