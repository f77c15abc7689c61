-- Places that a crawl met, and the datasets that they offer as a whole.

-- name: site_is_open
-- Whether the sitemaps of a place were put already, as URLs of this depth or a lesser one.
SELECT FROM site
WHERE site.bucket = %(bucket)b::int2 AND site.qid = %(qid)b::int8 AND site.crawl = %(crawl)b::int4
  AND site.authority = %(authority)b::text AND site.depth <= %(depth)b::int2

-- name: open_site
-- They are put.
INSERT INTO site (bucket, qid, crawl, authority, opened_at, depth)
VALUES (%(bucket)b::int2, %(qid)b::int8, %(crawl)b::int4, %(authority)b::text, %(now)b::int8, %(depth)b::int2)
ON CONFLICT (bucket, qid, crawl, authority) DO UPDATE SET depth = least(site.depth, excluded.depth)

-- name: listed_so_far
-- What sitemaps of a place have brought: files and addresses.
SELECT site.sitemaps, site.sitemap_urls FROM site
WHERE site.bucket = %(bucket)b::int2 AND site.qid = %(qid)b::int8 AND site.crawl = %(crawl)b::int4
  AND site.authority = %(authority)b::text

-- name: count_listed
-- They have brought more. A place that nobody opened stays so: its depth is beyond all.
INSERT INTO site (bucket, qid, crawl, authority, opened_at, depth, sitemaps, sitemap_urls)
VALUES (%(bucket)b::int2, %(qid)b::int8, %(crawl)b::int4, %(authority)b::text, %(now)b::int8, 32767,
        %(sitemaps)b::int8, %(sitemap_urls)b::int8)
ON CONFLICT (bucket, qid, crawl, authority)
DO UPDATE SET sitemaps = site.sitemaps + excluded.sitemaps, sitemap_urls = site.sitemap_urls + excluded.sitemap_urls

-- name: put_site_dataset
-- A dataset of a sitemap; known, it keeps the way that was chosen for it.
INSERT INTO site_dataset (crawl, dataset, sitemap, state, prefixes, description, plan, missing, seen_at)
VALUES (%(crawl)b::int4, %(dataset)b::bytea, %(sitemap)b::text, %(state)b::text, %(prefixes)b::text[],
        %(description)b::jsonb, %(plan)b::jsonb, %(missing)b::text[], %(now)b::int8)
ON CONFLICT (crawl, dataset) DO UPDATE
SET state = excluded.state, prefixes = excluded.prefixes, plan = excluded.plan, missing = excluded.missing,
    attempt = 0
WHERE site_dataset.state = 'claimed' AND excluded.state <> 'claimed'

-- name: waiting_for
-- Those that miss an address.
SELECT site_dataset.dataset, site_dataset.sitemap, site_dataset.state, site_dataset.description, site_dataset.plan, site_dataset.attempt,
       site_dataset.missing
FROM site_dataset
WHERE site_dataset.crawl = %(crawl)b::int4 AND site_dataset.state = 'copying'
  AND %(url)b::text = ANY(site_dataset.missing)

-- name: covered
-- What need not be asked for one by one, whether it is had, and what was found when URIs were looked up in it.
SELECT site_dataset.crawl, site_dataset.dataset, site_dataset.sitemap, site_dataset.state, site_dataset.prefixes,
       site_dataset.plan->site_dataset.attempt->'urls' AS urls, site_dataset.description->'samples' AS samples,
       site_dataset.copies, site_dataset.compared, site_dataset.described, site_dataset.documents,
       site_dataset.statements, site_dataset.confirmed
FROM site_dataset WHERE site_dataset.state IN ('copying', 'had')

-- name: note_read
-- An address of attempts under way was read; with the last of them a dataset is had.
UPDATE site_dataset
SET missing = array_remove(site_dataset.missing, %(url)b::text),
    copies = site_dataset.copies || %(copies)b::jsonb,
    state = CASE WHEN cardinality(array_remove(site_dataset.missing, %(url)b::text)) = 0 THEN 'had'
                 ELSE site_dataset.state END
WHERE site_dataset.crawl = %(crawl)b::int4 AND site_dataset.state = 'copying'
  AND %(url)b::text = ANY(site_dataset.missing)

-- name: note_failed
-- The attempt came to nothing: the next one begins, or the prefixes are free to be asked for.
UPDATE site_dataset
SET attempt = %(attempt)b::int4 + 1, missing = %(missing)b::text[], state = %(state)b::text, copies = '[]'
WHERE site_dataset.crawl = %(crawl)b::int4 AND site_dataset.dataset = %(dataset)b::bytea
  AND site_dataset.attempt = %(attempt)b::int4 AND site_dataset.state = 'copying'

-- name: met
-- URLs of a host that a dataset covers, as far as the crawl has met them: those that were visited first.
SELECT url.url, url.uid, url.status <> 0 AS visited FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.qid = %(qid)b::int8 AND url.crawl = %(crawl)b::int4
  AND EXISTS (SELECT FROM unnest(%(prefixes)b::text[]) AS prefix (iri) WHERE starts_with(url.url, prefix.iri))
  AND url.url <> ALL(%(urls)b::text[])
ORDER BY url.status = 0, url.uid LIMIT %(most)b::int4

-- name: any_unvisited
-- Whether some of these were not visited yet.
SELECT FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.qid = %(qid)b::int8 AND url.crawl = %(crawl)b::int4
  AND url.uid = ANY(%(uid)b::int8[]) AND url.status = 0
LIMIT 1

-- name: documents_of
-- The last reading of each of these that gave quads.
SELECT DISTINCT ON (capture.uid) capture.uid, capture.segment, capture.frame, capture.start, capture.length
FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = %(qid)b::int8 AND capture.crawl = %(crawl)b::int4
  AND capture.uid = ANY(%(uid)b::int8[]) AND capture.outcome = 1 AND capture.segment IS NOT NULL
ORDER BY capture.uid, capture.started_at DESC

-- name: note_compared
-- What was found when the copy was compared; if that is too little, resources are asked for one by one.
UPDATE site_dataset
SET compared = %(compared)b::int4, described = %(described)b::int4, documents = %(documents)b::int4,
    statements = %(statements)b::int4, confirmed = %(confirmed)b::int4, state = %(state)b::text
WHERE site_dataset.crawl = %(crawl)b::int4 AND site_dataset.dataset = %(dataset)b::bytea
  AND site_dataset.state = 'had' AND site_dataset.compared IS NULL

-- name: put_claims
-- What a host's sitemap says of places on other hosts, and of its own.
INSERT INTO site_claim (crawl, host, statement)
SELECT %(crawl)b::int4, %(host)b::text, claimed.statement FROM unnest(%(statement)b::bytea[]) AS claimed (statement)
ON CONFLICT DO NOTHING

-- name: read_claims
-- Who says the same.
SELECT site_claim.host, site_claim.statement FROM site_claim
WHERE site_claim.crawl = %(crawl)b::int4 AND site_claim.statement = ANY(%(statement)b::bytea[])

-- name: waiting_claims
-- Datasets whose other side had not spoken yet.
SELECT site_dataset.dataset, site_dataset.sitemap, site_dataset.description FROM site_dataset
WHERE site_dataset.crawl = %(crawl)b::int4 AND site_dataset.state = 'claimed'
LIMIT 1000

-- name: count_host_links
-- Adds to the counts. A host that leads to very many others keeps those it named first. In the order of the key, so
-- that two workers never wait for each other in a circle.
INSERT INTO host_link (from_host, to_host, links)
SELECT new.from_host, new.to_host, new.links
FROM (SELECT one.from_host, one.to_host, one.links, known.to_host IS NOT NULL AS known,
             row_number() OVER (PARTITION BY one.from_host, known.to_host IS NULL ORDER BY one.links DESC) AS place
      FROM unnest(%(from_host)b::text[], %(to_host)b::text[], %(links)b::int8[]) AS one (from_host, to_host, links)
      LEFT JOIN host_link AS known ON known.from_host = one.from_host AND known.to_host = one.to_host) AS new
WHERE new.known OR new.place + (SELECT count(*) FROM host_link AS of_host WHERE of_host.from_host = new.from_host)
                   <= %(most)b::int4
ORDER BY new.from_host, new.to_host
ON CONFLICT (from_host, to_host) DO UPDATE SET links = host_link.links + excluded.links
