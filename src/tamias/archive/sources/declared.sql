-- Datasets as their publishers declare them in Semantic Sitemaps.

-- name: declared
-- All of them, each with the sitemap that says so; with an IRI, those whose prefixes it begins with.
SELECT site_dataset.crawl, site_dataset.dataset, site_dataset.sitemap, site_dataset.state, site_dataset.description,
       site_dataset.seen_at
FROM site_dataset
WHERE %(iri)b::text IS NULL
   OR EXISTS (SELECT FROM jsonb_array_elements(site_dataset.description -> 'prefixes') AS prefix
              WHERE starts_with(%(iri)b::text, prefix ->> 'iri'))
ORDER BY site_dataset.sitemap, site_dataset.dataset, site_dataset.crawl

-- name: documents_at
-- What was read at addresses: when, and the quads it holds now.
SELECT known.document, max(known.started_at), bool_or(known.segment IS NOT NULL)
FROM current_document AS known
WHERE known.document_key = ANY(ARRAY(
    SELECT substr(sha256(convert_to(wanted.url, 'UTF8')), 1, 16) FROM unnest(%(url)b::text[]) AS wanted (url)))
GROUP BY known.document ORDER BY known.document

-- name: led_to
-- Where an address led when it was last visited with success.
SELECT coalesce(capture.final_url, capture.url) FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = %(qid)b::int8 AND capture.uid = %(uid)b::int8
  AND capture.outcome IN (1, 2)
ORDER BY capture.started_at DESC LIMIT 1

-- name: site_documents
-- Documents of a site that hold statements, some of them, with the time of the latest reading.
SELECT known.document, known.started_at FROM current_document AS known
WHERE known.segment IS NOT NULL AND starts_with(known.document, %(prefix)b::text)
ORDER BY known.started_at DESC, known.document LIMIT %(most)b::int4
