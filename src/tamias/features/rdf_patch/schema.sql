-- What the feed of patches is read by.

-- name: version_1
-- The versions of a resource in the order in which they became known.
CREATE INDEX IF NOT EXISTS event_of_version ON event (resource, event) WHERE kind = 'version';
