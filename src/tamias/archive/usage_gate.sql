-- What servers said about the use of what they gave.

-- name: signals
-- All captures with which anything was said, with the bodies that they brought.
SELECT capture.capture::text, coalesce(capture.final_url, capture.url), coalesce(encode(capture.sha256, 'hex'), ''),
       capture.signals
FROM capture WHERE capture.signals IS NOT NULL
