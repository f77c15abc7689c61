-- What each document holds now: one row for a document, so that nothing current is searched for in all captures.
-- And what was made of the copies of datasets that a site offers as a whole.

CREATE TABLE current_document (
    bucket int2 NOT NULL,
    document_key bytea NOT NULL,                -- the first half of the SHA-256 of the document's URL
    qid int8 NOT NULL,
    started_at int8 NOT NULL,
    capture uuid NOT NULL,                      -- the reading, or what ended it
    segment int8,                               -- where its quads stand; null: it holds none any more
    frame int8,
    start int8,
    length int8,
    cut bool NOT NULL,                          -- read up to a limit only
    document text COLLATE "C" NOT NULL,
    PRIMARY KEY (bucket, document_key)
);
CREATE INDEX current_document_capture ON current_document (bucket, capture);

-- Of each document the last reading with quads. It ended when the document was gone later, or was read without
-- quads; but an answer with the same body was not read again, and a redirect elsewhere is no reading. Of two
-- readings that a limit cut the later counts, where no whole one does.
INSERT INTO current_document (bucket, document_key, qid, started_at, capture, segment, frame, start, length, cut,
                              document)
WITH read_once AS (
    SELECT capture.*, coalesce(capture.final_url, capture.url) AS document,
           capture.outcome NOT IN (1, 3) AS cut,
           count(*) FILTER (WHERE capture.outcome = 1 AND capture.segment IS NOT NULL) OVER earlier AS reading,
           bool_or(capture.segment IS NOT NULL) OVER (
               PARTITION BY capture.bucket, coalesce(capture.final_url, capture.url)) AS had_quads
    FROM capture
    WHERE capture.outcome = 3 OR capture.segment IS NOT NULL
       OR capture.outcome = 1 AND coalesce(capture.status, 200) NOT BETWEEN 300 AND 399
    WINDOW earlier AS (PARTITION BY capture.bucket, coalesce(capture.final_url, capture.url)
                       ORDER BY capture.started_at, capture.capture)),
compared AS (
    SELECT read_once.*, first_value(read_once.sha256) OVER (
               PARTITION BY read_once.bucket, read_once.document, read_once.reading
               ORDER BY read_once.started_at, read_once.capture) AS body
    FROM read_once WHERE read_once.had_quads),
telling AS (
    SELECT compared.*, count(*) FILTER (WHERE NOT compared.cut) OVER (
               PARTITION BY compared.bucket, compared.document
               ORDER BY compared.started_at DESC, compared.capture DESC) AS whole_since
    FROM compared
    WHERE compared.outcome = 3 OR compared.segment IS NOT NULL OR compared.reading = 0 OR compared.sha256 IS NULL
       OR compared.body IS NULL OR compared.sha256 <> compared.body)
SELECT DISTINCT ON (telling.bucket, telling.document)
       telling.bucket, substr(sha256(convert_to(telling.document, 'UTF8')), 1, 16), telling.qid, telling.started_at,
       telling.capture, CASE WHEN telling.outcome <> 3 THEN telling.segment END, telling.frame, telling.start,
       telling.length, telling.cut, telling.document
FROM telling
WHERE telling.whole_since = CASE WHEN telling.cut THEN 0 ELSE 1 END
ORDER BY telling.bucket, telling.document, telling.cut OR telling.segment IS NULL OR telling.outcome = 3,
         telling.cut DESC, telling.started_at DESC, telling.capture DESC;

-- What sinks were told by mistake is put right.
UPDATE outbox
SET due = CASE outbox.due WHEN 9223372036854775807 THEN 0 ELSE outbox.due END, tries = 0, problem = NULL,
    started_at = current_document.started_at, capture = current_document.capture,
    segment = current_document.segment, frame = current_document.frame, start = current_document.start,
    length = current_document.length
FROM current_document
WHERE current_document.bucket = outbox.bucket AND current_document.document_key = outbox.document_key
  AND current_document.segment IS NOT NULL
  AND (outbox.started_at, outbox.capture) > (current_document.started_at, current_document.capture);

-- A copy covers what it describes: some of the URIs that it should are looked up in it.
ALTER TABLE site_dataset
    ADD COLUMN copies jsonb NOT NULL DEFAULT '[]',  -- tamias.model.record.Extent of each document it was read from
    ADD COLUMN compared int4,                       -- URIs that were looked up; null: not yet
    ADD COLUMN described int4;                      -- those of them that it describes
