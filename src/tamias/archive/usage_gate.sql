-- What servers said about the use of what they gave.

-- name: signals
-- All captures with which anything was said, with the bodies that they brought.
SELECT capture.capture::text, coalesce(capture.final_url, capture.url), coalesce(encode(capture.sha256, 'hex'), ''),
       capture.signals
FROM capture WHERE capture.signals IS NOT NULL

-- name: signals_of
-- What was said with one capture. In which bucket it is, is not known.
SELECT capture.signals FROM capture
WHERE capture.bucket IN (SELECT generate_series(0, meta.buckets - 1) FROM meta)
  AND capture.capture = %(capture)b::text::uuid AND capture.signals IS NOT NULL
