-- Named tokens.

-- name: put_token
-- A new token; nothing where one of that name is in use.
INSERT INTO token (token, name, hash, scopes, bounds, made_at, made_by, expires_at)
VALUES (%(token)b::text, %(name)b::text, %(hash)b::bytea, %(scopes)b::text[], %(bounds)b::text[],
        %(now)b::int8, %(by)b::text, %(expires_at)b::int8)
ON CONFLICT DO NOTHING

-- name: find_token
-- The token of an id, in use or not.
SELECT token.token, token.name, token.hash, token.scopes, token.bounds, token.expires_at, token.withdrawn_at
FROM token WHERE token.token = %(token)b::text

-- name: list_tokens
-- All tokens, those in use first.
SELECT token.token, token.name, token.scopes, token.bounds, token.made_at, token.made_by, token.expires_at,
       token.withdrawn_at, token.withdrawn_by
FROM token ORDER BY token.withdrawn_at IS NOT NULL, token.name, token.made_at LIMIT 1000

-- name: withdraw_token
-- A token by its name or id: from now on it opens nothing.
UPDATE token SET withdrawn_at = %(now)b::int8, withdrawn_by = %(by)b::text
WHERE (token.name = %(name)b::text OR token.token = %(name)b::text) AND token.withdrawn_at IS NULL

-- name: listed_by_portals
-- Which of some addresses of watched resources one of these portals lists.
SELECT resource.url FROM resource
WHERE resource.url = ANY(%(urls)b::text[])
  AND EXISTS (SELECT FROM source WHERE source.resource = resource.resource
              AND source.portal = ANY(%(portals)b::text[]))

-- name: urls_of
-- The addresses of resources by their ids.
SELECT resource.resource, resource.url FROM resource WHERE resource.resource = ANY(%(ids)b::text[])
