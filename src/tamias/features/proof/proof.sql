-- Trees of digests, and what they are made of.

-- name: trees_of_day
-- The trees of a day, the earliest first.
SELECT proof_tree.leaves, proof_tree.token, proof_tree.stamped_at, proof_tree.tsa
FROM proof_tree WHERE proof_tree.day = %(day)b::int4 ORDER BY proof_tree.stamped_at

-- name: leaves_of_day
-- The digests of the texts (tree.py) about the versions of a day.
SELECT sha256(convert_to(format(E'tamias-version: 1\nurl: %%s\ncaptured: %%s\nsha256: %%s\n', resource.url,
              to_char(timestamp 'epoch' + version.captured_at * interval '1 millisecond',
                      'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
              encode(version.sha256, 'hex')), 'UTF8'))
FROM kept_version AS version JOIN resource ON resource.resource = version.resource
WHERE version.captured_at >= %(day)b::int8 * 86400000 AND version.captured_at < (%(day)b::int8 + 1) * 86400000

-- name: stamped_days
-- Days from one on that have a tree.
SELECT DISTINCT proof_tree.day FROM proof_tree WHERE proof_tree.day >= %(first)b::int4

-- name: add_tree
-- A tree with its timestamp; another process may have made the same.
INSERT INTO proof_tree (root, day, leaves, token, stamped_at, tsa)
VALUES (%(root)b::bytea, %(day)b::int4, %(leaves)b::bytea, %(token)b::bytea, %(stamped_at)b::int8, %(tsa)b::text)
ON CONFLICT DO NOTHING
